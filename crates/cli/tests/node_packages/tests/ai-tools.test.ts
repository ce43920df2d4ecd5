import { tool } from "ai";
import { z } from "zod";
import { scenario } from "trialrun";

export default scenario("ai-tools", async ({ agent, assert }) => {
  const look = tool({ description: "looks", inputSchema: z.object({ city: z.string() }), execute: async ({ city }) => `sun in ${city}` });
  const found = await look.execute!({ city: "Rome" }, { toolCallId: "1", messages: [] });
  assert.contains(await agent.send(String(found)), "sun in Rome");
});
