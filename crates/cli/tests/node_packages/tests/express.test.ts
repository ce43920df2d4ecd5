import express from "express";
import { once } from "node:events";
import { scenario } from "trialrun";

export default scenario("express", async ({ agent, assert }) => {
  const app = express();
  app.get("/hi/:name", (request, response) => void response.json({ hi: request.params.name }));
  const server = app.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  const response = await fetch(`http://127.0.0.1:${port}/hi/ada`);
  assert.contains(await agent.send(await response.text()), "ada");
  server.close();
  server.closeAllConnections();
});
