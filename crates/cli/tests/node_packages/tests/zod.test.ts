import { z } from "zod";
import { scenario } from "trialrun";

export default scenario("zod", async ({ agent, assert }) => {
  const Reply = z.object({ order: z.string().regex(/^A-\d+$/) });
  const reply = await agent.send(JSON.stringify({ order: "A-1042" }));
  assert.jsonSchema(reply, Reply);
  assert.custom("a wrong one", () => !Reply.safeParse({ order: "B" }).success);
});
