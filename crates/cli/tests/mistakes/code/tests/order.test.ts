import { assert, scenario } from "trialrun";

export default scenario("remembers the order", { timeout: "10s", tags: ["smoke"], fixtures: { git_init: true } }, async ({ agent }) => {
  const first = await agent.send('!call lookup_order {"order": "A-1042"}\n!say It is A-1042.');
  assert.toolCalled(first, "lookup_order", { order: "^A-1042$" });
  if (first.mentions("A-1042")) {
    const second = await agent.send("!say A-1042");
    assert.contains(second, "A-1042");
    assert.latency(second, "5s");
  }
  const files = await agent.files.list();
  assert.custom("no files", () => files.length >= 0);
});

export const rows = scenario.each([["A-1", "shipped"], ["A-2", "lost"]])("knows that %s is %s",
  async ({ agent }, order, state) => {
    assert.contains(await agent.send(`!say ${order} is ${state}`), state);
  });
