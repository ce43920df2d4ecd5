// fabrik.config.ts
import { defineConfig } from "@fabrik/cli";

export default defineConfig({
  agent: {
    type: "http",
    url: "http://localhost:3000/api/chat",
    headers: { "Authorization": "Bearer ${env.AGENT_API_KEY}" },
  },
  tests: "./tests",
  llm: {
    provider: "openai",
    model: "gpt-",
    apiKey: "${env.OPENAI_API_KEY}",
  },
  sandbox: {
    provider: "daytona",  // or "local"
    daytona: {
      apiKey: "${env.DAYTONA_API_KEY}",
      target: "us",
    },
  },
  eval: {
    parallelism: 3,
    retries: 1,
    defaultTimeout: 30000,
  },
  diff: {
    regressionThreshold: 0.05,
  },
  report: {
    formats: ["terminal", "json"],
    outputDir: "./fabrik-reports",
  },
  store: {
    path: "./.fabrik/traces.db",
  },
});
