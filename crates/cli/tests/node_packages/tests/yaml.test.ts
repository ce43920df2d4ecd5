import { parse } from "yaml";
import { load } from "js-yaml";
import { scenario } from "trialrun";

export default scenario("yaml", async ({ agent, assert }) => {
  assert.contains(await agent.send(parse("a: [1, two]").a[1] + (load("b: three") as { b: string }).b), "twothree");
});
