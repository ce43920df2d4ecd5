// Spans of functions: what an agent did, as its instrumentation tells it.
"use strict";

/** Finished spans of the replies in progress, by their trace. */
const kept = new Map();

/** Exporter of the program. */
let Exporter;

/** Returns a span processor for the program's tracer provider. `OTLPTraceExporter` sends the spans of each reply. */
function spanProcessor(OTLPTraceExporter) {
  if (typeof OTLPTraceExporter !== "function") throw new TypeError("`spanProcessor` needs the class `OTLPTraceExporter`");
  Exporter = OTLPTraceExporter;
  return {
    onStart() {},
    onEnd(span) {
      kept.get(span.spanContext().traceId)?.push(span);
    },
    // Spans are sent with each reply.
    async forceFlush() {},
    async shutdown() {},
  };
}

/** Returns the package that the program's instrumentation uses. */
function api() {
  try {
    return require("@opentelemetry/api");
  } catch (error) {
    throw new Error("`traces` needs the package `@opentelemetry/api`", { cause: error });
  }
}

/** Calls a function, and sends the spans of its reply before it is returned: those within one that covers the whole reply. */
async function inTrace({ endpoint, traceparent }, answer) {
  const { ROOT_CONTEXT, context, trace } = api();
  const [, traceId, spanId] = traceparent.split("-");
  const parent = trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags: 1, isRemote: true });
  kept.set(traceId, []);
  const whole = trace.getTracer("trialrun").startSpan("reply", {}, parent);
  try {
    return await context.with(trace.setSpan(parent, whole), answer);
  } finally {
    whole.end();
    const spans = kept.get(traceId);
    kept.delete(traceId);
    if (spans.length) {
      const exporter = new Exporter({ url: `${endpoint}/v1/traces` });
      await new Promise((resolve) => exporter.export(spans, resolve));
      await exporter.shutdown();
    }
  }
}

module.exports = { api, inTrace, spanProcessor };
