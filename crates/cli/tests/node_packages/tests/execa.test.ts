import { execa } from "execa";
import chalk from "chalk";
import pLimit from "p-limit";
import { scenario } from "trialrun";

export default scenario("execa", async ({ agent, assert }) => {
  const limit = pLimit(1);
  const { stdout } = await limit(() => execa("node", ["-p", "1 + 1"]));
  assert.contains(await agent.send(stdout + chalk.level), "2");
});
