import { assert, persona, scenario } from "trialrun";

export const hello = scenario("says what it can do", { tags: ["smoke"] }, async ({ agent }) => {
  const reply = await agent.send("Hello!");
  assert.contains(reply, "orders");
  assert.toolNotCalled(reply, "lookup_order");
});

export const order = scenario("looks up an order", async ({ agent }) => {
  const ada = persona({ role: "customer", name: "Ada", tone: "in a hurry" });

  const first = await agent.send(ada.says("Where is A-17?"));
  assert.toolCalled(first, "lookup_order", { order: "^A-17$" });
  assert.matches(first, /arrives on \w+day/);

  // A test is code: the next step can depend on the reply.
  if (first.mentions("A-17")) {
    const second = await agent.send(ada.says("And can I return it?"));
    assert.contains(second, "30 days");
    assert.notContains(second, "cannot");
  }
});
