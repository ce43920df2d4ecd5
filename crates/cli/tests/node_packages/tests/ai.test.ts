import { generateText } from "ai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { answering } from "../src/server";
import { scenario } from "trialrun";

export default scenario("ai", async ({ agent, assert }) => {
  const choice = { index: 0, finish_reason: "stop", message: { role: "assistant", content: "by ai" } };
  const { url, close } = await answering(() => ({ id: "1", object: "chat.completion", created: 1, model: "m", choices: [choice], usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } }));
  const model = createOpenAICompatible({ name: "own", baseURL: url }).chatModel("m");
  const { text } = await generateText({ model, prompt: "hi" });
  close();
  assert.contains(await agent.send(text), "by ai");
});
