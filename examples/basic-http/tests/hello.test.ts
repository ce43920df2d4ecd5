import { assert, persona, scenario } from "trialrun";

export const hello = scenario("greets and says what it can do", { tags: ["smoke"] }, async ({ agent }) => {
  const reply = await agent.send("Hello?");
  assert.contains(reply, "orders");
  assert.contains(reply, "return policy");
  assert.toolNotCalled(reply, "lookup_order");
  assert.latency(reply, { max: "2s" });
});

export const order = scenario("looks up an order and remembers it", async ({ agent }) => {
  const alice = persona({ role: "customer", name: "Alice", tone: "in a hurry" });

  const first = await agent.send(alice.says("Where is A-1042?"));
  assert.toolCalled(first, "lookup_order", { order: "A-1042" });
  assert.matches(first, /arrives on \w+day/);

  // The second question makes sense only if the bot remembers the first one.
  if (first.mentions("A-1042")) {
    const second = await agent.send(alice.says("Which order did I ask for?"));
    assert.contains(second, "A-1042");
  }
});

export const unknown = scenario("does not invent an order", async ({ agent }) => {
  const reply = await agent.send("Has A-9999 been delivered?");
  assert.contains(reply, "cannot find");
  assert.notContains(reply, "delivered last");
  await assert.custom("asks for the number", (r) => r.text.trim().endsWith("?"), reply);
});
