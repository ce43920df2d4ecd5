import { defineConfig } from "trialrun/config";

export default defineConfig({
  agent: {
    type: "openai-assistant",
    assistantId: "asst_example",
    // To use OpenAI itself, remove these two lines and set OPENAI_API_KEY.
    baseUrl: "http://127.0.0.1:3108/v1",
    apiKey: "no-key-needed",
    api: "assistants",
  },
  tests: "./tests",
  eval: { defaultTimeout: 10000 },
});
