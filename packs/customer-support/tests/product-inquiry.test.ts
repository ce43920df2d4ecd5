import { assert, persona, scenario } from "@fabrik/core";

// The simplest question. The agent should answer it immediately and explicitly, without an upsell.
export default scenario("asks for the return policy", { tags: ["support", "smoke"] }, async ({ agent }) => {
  const customer = persona({ role: "customer", tone: "neutral" });

  const reply = await agent.send(customer.says("What's the return policy?"));
  assert.matches(reply, /\b\d+ days\b/);
  assert.sentiment(reply, "helpful");
  assert.latency(reply, { max: 15_000 });
});
