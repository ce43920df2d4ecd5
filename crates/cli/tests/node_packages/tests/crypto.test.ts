import bcrypt from "bcryptjs";
import { createHash } from "node:crypto";
import iconv from "iconv-lite";
import { scenario } from "trialrun";

export default scenario("crypto", async ({ agent, assert }) => {
  const hash = createHash("sha256").update(iconv.encode("é", "latin1")).digest("hex");
  assert.contains(await agent.send(hash), hash);
  assert.custom("bcrypt", () => bcrypt.compareSync("x", bcrypt.hashSync("x", 4)));
});
