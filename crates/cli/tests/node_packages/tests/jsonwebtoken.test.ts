import jwt from "jsonwebtoken";
import { scenario } from "trialrun";

export default scenario("jsonwebtoken", async ({ agent, assert }) => {
  const token = jwt.sign({ user: "ada" }, "a key that is long enough for it", { expiresIn: "1h" });
  const known = jwt.verify(token, "a key that is long enough for it") as jwt.JwtPayload;
  assert.contains(await agent.send(known.user), "ada");
  assert.custom("another key is refused", () => {
    try {
      jwt.verify(token, "another key");
      return false;
    } catch {
      return true;
    }
  });
});
