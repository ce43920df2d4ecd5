import "dotenv/config";
import { scenario } from "trialrun";

export default scenario("dotenv", async ({ agent, assert }) => {
  assert.contains(await agent.send(process.env.GREETING!), "from a file");
});
