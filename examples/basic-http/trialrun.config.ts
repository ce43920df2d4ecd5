import { defineConfig } from "trialrun/config";

export default defineConfig({
  agent: {
    type: "http",
    url: "http://127.0.0.1:3107/api/chat",
  },
  tests: "./tests",
  eval: { defaultTimeout: 10000 },
});
