import { WebSocket, WebSocketServer } from "ws";
import { once } from "node:events";
import { scenario } from "trialrun";

export default scenario("ws", async ({ agent, assert }) => {
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  server.on("connection", (socket) => socket.on("message", (text) => socket.send(`echo ${text}`)));
  await once(server, "listening");
  const client = new WebSocket(`ws://127.0.0.1:${(server.address() as { port: number }).port}`);
  await once(client, "open");
  client.send("socket");
  const [text] = await once(client, "message");
  client.close();
  server.close();
  assert.contains(await agent.send(String(text)), "echo socket");
});
