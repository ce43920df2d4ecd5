import OpenAI from "openai";
import { answering } from "../src/server";
import { scenario } from "trialrun";

export default scenario("openai", async ({ agent, assert }) => {
  const choice = { index: 0, finish_reason: "stop", message: { role: "assistant", content: "by openai" } };
  const { url, close } = await answering(({ path, headers }) => ({ id: "1", object: "chat.completion", choices: [choice], path, key: headers.authorization }));
  const client = new OpenAI({ apiKey: "sk-test-key", baseURL: url });
  const completion = await client.chat.completions.create({ model: "m", messages: [{ role: "user", content: "hi" }] });
  close();
  assert.contains(await agent.send(completion.choices[0].message.content!), "by openai");
});
