// A placeholder for your agent. It answers from a list, so the tests run offline. trialrun calls `execute` for every
// message and passes the conversation so far. `tools` lists the tools that it called for the answer.

type Message = { role: "user" | "assistant"; content: string };

const orders: Record<string, string> = { "A-17": "arrives on Tuesday" };

export function execute({ args }: { args: { input?: string; messages?: Message[] } }) {
  const said = (args.messages ?? []).map((message) => message.content).concat(args.input ?? "");
  const asked = said[said.length - 1].toLowerCase();
  if (asked.includes("return")) return { output: "You can send anything back within 30 days.", tools: [] };

  const order = said.join(" ").match(/[A-Z]-\d+/)?.[0];
  if (order === undefined) return { output: "Hello! I know about orders and returns. Which order is it?", tools: [] };

  const found = orders[order] ?? null;
  return {
    output: found ? `Your order ${order} ${found}.` : `I cannot find an order ${order}.`,
    tools: [{ name: "lookup_order", args: { order }, result: found }],
  };
}
