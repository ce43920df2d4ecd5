import OpenAI from "openai";
import { answering } from "../src/server";
import { scenario } from "trialrun";

export default scenario("openai-stream", async ({ agent, assert }) => {
  const chunk = (content: string) => `data: ${JSON.stringify({ id: "1", choices: [{ index: 0, delta: { content } }] })}\n\n`;
  const { url, close } = await answering(() => chunk("by ") + chunk("stream") + "data: [DONE]\n\n", "text/event-stream");
  const client = new OpenAI({ apiKey: "sk-test-key", baseURL: url });
  let text = "";
  for await (const part of await client.chat.completions.create({ model: "m", messages: [], stream: true })) text += part.choices[0].delta.content;
  close();
  assert.contains(await agent.send(text), "by stream");
});
