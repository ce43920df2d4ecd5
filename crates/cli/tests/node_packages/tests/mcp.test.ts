import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { scenario } from "trialrun";

export default scenario("mcp", async ({ agent, assert }) => {
  const server = new McpServer({ name: "own", version: "1" });
  server.registerTool("greet", { description: "greets" }, async () => ({ content: [{ type: "text", text: "hi from a tool" }] }));
  const [one, other] = InMemoryTransport.createLinkedPair();
  const client = new Client({ name: "test", version: "1" });
  await Promise.all([server.connect(one), client.connect(other)]);
  const { content } = await client.callTool({ name: "greet" });
  assert.contains(await agent.send(JSON.stringify(content)), "hi from a tool");
});
