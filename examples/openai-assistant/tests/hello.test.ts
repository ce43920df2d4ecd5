import { assert, scenario } from "trialrun";

export default scenario("tells the opening hours and remembers the thread", { tags: ["smoke"] }, async ({ agent }) => {
  const first = await agent.send("When are you open?");
  assert.contains(first, "9 to 18");
  assert.tokenUsage(first, { max: 1000 });

  const second = await agent.send("What did I ask first?");
  assert.contains(second, "When are you open?");
});
