// tests/angry-customer.test.ts
import { scenario, persona, assert } from "@fabrik/core";

export default scenario("angry customer refund request", async ({ agent }) => {
  const karen = persona({
    role: "customer",
    tone: "frustrated",
    backstory: "Received damaged laptop 3 days ago",
  });

  const r1 = await agent.send(
    karen.says("I want a full refund RIGHT NOW or I'm disputing the charge.")
  );

  assert.sentiment(r1, "empathetic");
  assert.notContains(r1, "blame the customer");
  assert.toolCalled(r1, "lookup_order");

  // Multi-turn with conditional logic
  if (r1.mentions("refund")) {
    const r2 = await agent.send(
      karen.says("Fine, but I want it processed TODAY.")
    );
    assert.llmJudge(r2, {
      criteria: "Did the agent set realistic expectations?",
      threshold: 3,
      scale: 5,
    });
  }
});
