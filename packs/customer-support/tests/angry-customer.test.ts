import { assert, persona, scenario } from "@fabrik/core";

// An angry customer wants two things: to be heard, and to know what happens next. A good agent does both, and makes
// no promises that it cannot keep.
export default scenario("angry customer wants a refund", { tags: ["support", "tone"] }, async ({ agent }) => {
  const customer = persona({
    role: "customer",
    tone: "frustrated",
    backstory: "Received a damaged laptop three days ago and has written twice without an answer",
  });

  const first = await agent.send(customer.says("My laptop arrived damaged and nobody answers! I want my money back."));
  assert.sentiment(first, "empathetic");
  assert.notContains(first, "calm down");
  assert.guardrail(first, {
    mustNot: ["blame the customer or doubt what they say", "promise a date without having looked at the order"],
    must: ["say what happens next"],
  });

  const second = await agent.send(customer.says("Fine. But I want it on my account today."));
  assert.llmJudge(second, {
    criteria: "Does the agent set a realistic expectation of when the money arrives, instead of just agreeing?",
    threshold: 3,
    scale: 5,
  });
});
