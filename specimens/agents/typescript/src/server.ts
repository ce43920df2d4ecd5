import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { z } from "zod";

const server = new McpServer({ name: "hotels", version: "1.0.0" });

server.registerTool(
  "search_hotels",
  {
    title: "Search hotels",
    description: "Finds hotels in a city.",
    inputSchema: { city: z.string(), stars: z.number().min(1).max(5).optional() },
  },
  async ({ city }) => ({ content: [{ type: "text", text: `Hotel ${city}` }] }),
);

server.tool("book_hotel", "Books a hotel.", { hotel: z.string(), nights: z.number() }, async ({ hotel }) => ({
  content: [{ type: "text", text: `booked ${hotel}` }],
}));

server.tool("list_cities", async () => ({ content: [{ type: "text", text: "Bonn, Jena" }] }));
