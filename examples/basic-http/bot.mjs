// A small support bot to test: HTTP on loopback, a memory for each conversation, one tool. It needs only Node.js, and
// exits after ten minutes without a request.
import { createServer } from "node:http";

const ORDERS = { "A-1042": "on its way, it arrives on Friday", "A-1043": "delivered last Tuesday" };

const conversations = new Map();

function lookupOrder({ order }) {
  return ORDERS[order] ?? "unknown";
}

function answer(message, memory) {
  const order = message.match(/\b[A-Z]-\d{4}\b/)?.[0];
  if (order) {
    const call = { name: "lookup_order", arguments: { order }, result: lookupOrder({ order }) };
    memory.order = order;
    const text = call.result === "unknown"
      ? `I cannot find an order ${order}. Could you check the number in your confirmation email?`
      : `Order ${order} is ${call.result}.`;
    return { message: text, tool_calls: [call] };
  }
  if (/\bwhich order\b/i.test(message)) {
    return { message: memory.order ? `We were talking about order ${memory.order}.` : "You have not named an order yet." };
  }
  if (/return policy/i.test(message)) {
    return { message: "You can return anything within 30 days for a full refund." };
  }
  return { message: "Hello! I can look up orders and explain our return policy. How can I help?" };
}

const server = createServer(async (request, response) => {
  idle.refresh();
  const reply = (status, body) => {
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify(body));
  };
  let text = "";
  for await (const chunk of request) text += chunk;
  try {
    const { message, conversation_id: id } = JSON.parse(text);
    if (typeof message !== "string") return reply(400, { error: "`message` is missing" });
    if (!conversations.has(id)) conversations.set(id, {});
    // An empty list says that no tool was called. Without it, that would not be known.
    reply(200, { tool_calls: [], ...answer(message, conversations.get(id)) });
  } catch (error) {
    reply(400, { error: String(error) });
  }
});

const idle = setTimeout(() => process.exit(0), 10 * 60 * 1000);
const port = Number(process.env.PORT ?? 3107);
server.listen(port, "127.0.0.1", () => console.log(`listening on http://127.0.0.1:${server.address().port}/api/chat`));
