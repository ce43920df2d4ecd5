import fastify from "fastify";
import { scenario } from "trialrun";

export default scenario("fastify", async ({ agent, assert }) => {
  const app = fastify();
  app.get("/", async () => ({ by: "fastify" }));
  const { body } = await app.inject("/");
  assert.contains(await agent.send(body), "fastify");
});
