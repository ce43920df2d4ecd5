import { nanoid } from "nanoid";
import { v4, validate } from "uuid";
import { scenario } from "trialrun";

export default scenario("ids", async ({ agent, assert }) => {
  const id = v4();
  assert.contains(await agent.send(id), id);
  assert.custom("both", () => validate(id) && nanoid().length === 21);
});
