// A function as the agent, with several trials at a time. It returns only text; what it did is known from the spans of the
// AI SDK.
import { createOpenAI } from "@ai-sdk/openai";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { NodeSDK } from "@opentelemetry/sdk-node";
import { generateText, stepCountIs, tool } from "ai";
import { agent, run, spanProcessor } from "trialrun";
import { z } from "zod";

new NodeSDK({ spanProcessors: [spanProcessor(OTLPTraceExporter)] }).start();
const openai = createOpenAI({ baseURL: `${process.env.MODEL}/v1`, apiKey: "none" });
const find_order = tool({
  description: "Finds an order.",
  inputSchema: z.object({ number: z.number() }),
  execute: async ({ number }) => `order ${number}: sent`,
});
const bot = agent({ costs: false, traces: "otlp" }, async function bot(prompt) {
  const { text } = await generateText({
    model: openai.chat("scripted-1"), prompt, tools: { find_order }, stopWhen: stepCountIs(5), experimental_telemetry: { isEnabled: true },
  });
  return text;
});
const finished = await run({ targets: "orders.yaml", agent: bot, trials: 4, jobs: 4 });
console.log(finished.text);
process.exit(finished.exitCode);
