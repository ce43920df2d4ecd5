import { Ajv } from "ajv";
import { scenario } from "trialrun";

export default scenario("ajv", async ({ agent, assert }) => {
  const isOrder = new Ajv().compile({ type: "object", required: ["id"], properties: { id: { type: "number" } } });
  assert.contains(await agent.send(`${isOrder({ id: 1 })} ${isOrder({ id: "x" })}`), "true false");
});
