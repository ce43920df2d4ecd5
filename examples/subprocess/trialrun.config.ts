import { defineConfig } from "trialrun/config";

export default defineConfig({
  agent: {
    type: "subprocess",
    command: "node",
    args: ["agent.mjs"],
  },
  tests: "./tests",
  eval: { defaultTimeout: 10000 },
});
