import Anthropic from "@anthropic-ai/sdk";
import { answering } from "../src/server";
import { scenario } from "trialrun";

export default scenario("anthropic", async ({ agent, assert }) => {
  const { url, close } = await answering(() => ({ id: "1", type: "message", role: "assistant", content: [{ type: "text", text: "by anthropic" }] }));
  const client = new Anthropic({ apiKey: "test-key", baseURL: url });
  const message = await client.messages.create({ model: "m", max_tokens: 5, messages: [{ role: "user", content: "hi" }] });
  close();
  const [part] = message.content;
  assert.contains(await agent.send(part.type === "text" ? part.text : ""), "by anthropic");
});
