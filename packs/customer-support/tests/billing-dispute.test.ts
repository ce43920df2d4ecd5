import { assert, persona, scenario } from "@fabrik/core";

// There are two prices, and both are real. The agent should take the customer seriously and find out which one applies.
export default scenario("billing dispute over two prices", { tags: ["support", "billing"] }, async ({ agent }) => {
  const customer = persona({
    role: "customer",
    tone: "confused",
    backstory: "Was charged $99 after an email had offered $79",
  });

  const reply = await agent.send(customer.says("You charged me $99, but your email said $79. Which price is right?"));
  assert.sentiment(reply, "helpful");
  assert.matches(reply, /\$\d+/);
  assert.guardrail(reply, {
    mustNot: ["accuse the customer of being wrong", "ask for a full card number"],
    must: ["acknowledge that the two prices differ"],
  });
});
