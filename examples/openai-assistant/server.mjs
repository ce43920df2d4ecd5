// Simulates a service with the Assistants API on loopback: threads, messages and runs, with one assistant that knows
// opening hours. It needs only Node.js, and exits after ten minutes without a request.
import { createServer } from "node:http";

const threads = new Map();
const runs = new Map();
let count = 0;
const id = (kind) => `${kind}_${++count}`;
const now = () => Math.floor(Date.now() / 1000);

function answer(messages) {
  const last = messages.findLast(({ role }) => role === "user").text;
  if (/sunday/i.test(last)) return "We are closed on Sundays.";
  if (/open|hours/i.test(last)) return "We are open from 9 to 18, Monday to Saturday.";
  if (/what did i ask/i.test(last)) return `Your first question was: ${messages[0].text}`;
  return "I can tell you our opening hours.";
}

const text = (content) =>
  typeof content === "string" ? content : content.map((part) => part.text?.value ?? part.text ?? "").join("");

const shown = (thread, { id, role, text }) => ({
  id, object: "thread.message", thread_id: thread, role, created_at: now(),
  content: [{ type: "text", text: { value: text, annotations: [] } }],
});

const routes = [
  ["POST", /^\/v1\/threads$/, (_, body) => {
    const thread = id("thread");
    threads.set(thread, (body.messages ?? []).map(({ role, content }) => ({ id: id("msg"), role, text: text(content) })));
    return { id: thread, object: "thread", created_at: now() };
  }],
  ["POST", /^\/v1\/threads\/(\w+)\/messages$/, ([thread], { role, content }) => {
    const message = { id: id("msg"), role, text: text(content) };
    threads.get(thread).push(message);
    return shown(thread, message);
  }],
  ["GET", /^\/v1\/threads\/(\w+)\/messages$/, ([thread]) => {
    const data = threads.get(thread).map((message) => shown(thread, message)).reverse();
    return { object: "list", data, has_more: false };
  }],
  ["POST", /^\/v1\/threads\/(\w+)\/runs$/, ([thread], { assistant_id }) => {
    const run = { id: id("run"), object: "thread.run", thread_id: thread, assistant_id, status: "queued", created_at: now() };
    runs.set(run.id, run);
    return { ...run };
  }],
  // Each poll advances the run by one step, to simulate a run that takes time.
  ["GET", /^\/v1\/threads\/(\w+)\/runs\/(\w+)$/, ([thread, name]) => {
    const run = runs.get(name);
    if (run.status === "queued") {
      run.status = "in_progress";
    } else if (run.status === "in_progress") {
      const messages = threads.get(thread);
      messages.push({ id: id("msg"), role: "assistant", text: answer(messages) });
      run.status = "completed";
      run.usage = { prompt_tokens: 20, completion_tokens: 10, total_tokens: 30 };
    }
    return { ...run };
  }],
  ["DELETE", /^\/v1\/threads\/(\w+)$/, ([thread]) => {
    threads.delete(thread);
    return { id: thread, object: "thread.deleted", deleted: true };
  }],
];

const server = createServer(async (request, response) => {
  idle.refresh();
  let body = "";
  for await (const chunk of request) body += chunk;
  const path = request.url.split("?")[0];
  const route = routes.find(([method, pattern]) => method === request.method && pattern.test(path));
  let status = 200;
  let answer;
  try {
    if (!route) throw new Error(`there is no ${request.method} ${path}`);
    answer = route[2](path.match(route[1]).slice(1), body ? JSON.parse(body) : {});
  } catch (error) {
    status = 404;
    answer = { error: { message: String(error.message), type: "invalid_request_error" } };
  }
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(answer));
});

const idle = setTimeout(() => process.exit(0), 10 * 60 * 1000);
const port = Number(process.env.PORT ?? 3108);
server.listen(port, "127.0.0.1", () => console.log(`listening on http://127.0.0.1:${server.address().port}/v1`));
