import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { scenario } from "trialrun";

export default scenario("processes", async ({ agent, assert }) => {
  const { stdout } = await promisify(execFile)(process.execPath, ["-p", "6 * 7"]);
  assert.contains(await agent.send(stdout), "42");
});
