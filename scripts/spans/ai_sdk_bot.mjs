// The AI SDK of Vercel, with its own spans. It serves its trials over HTTP, on the port in the environment.
import { createServer } from "node:http";
import { createOpenAI } from "@ai-sdk/openai";
import { context, propagation } from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { NodeSDK } from "@opentelemetry/sdk-node";
import { generateText, stepCountIs, tool } from "ai";
import { z } from "zod";

new NodeSDK({ traceExporter: new OTLPTraceExporter() }).start();
const openai = createOpenAI({ baseURL: `${process.env.MODEL}/v1`, apiKey: "none" });
const find_order = tool({
  description: "Finds an order.",
  inputSchema: z.object({ number: z.number() }),
  execute: async ({ number }) => `order ${number}: sent`,
});

createServer(async (request, response) => {
  let body = "";
  for await (const part of request) body += part;
  const work = () =>
    generateText({
      model: openai.chat("scripted-1"),
      prompt: JSON.parse(body || "{}").message ?? "",
      tools: { find_order },
      stopWhen: stepCountIs(5),
      experimental_telemetry: { isEnabled: true },
    });
  const { text } = await context.with(propagation.extract(context.active(), request.headers), work);
  response.setHeader("content-type", "application/json").end(JSON.stringify({ message: text }));
}).listen(Number(process.env.PORT), "127.0.0.1");
