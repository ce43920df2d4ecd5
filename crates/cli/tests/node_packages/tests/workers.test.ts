import { Worker } from "node:worker_threads";
import { once } from "node:events";
import { scenario } from "trialrun";

export default scenario("workers", async ({ agent, assert }) => {
  const worker = new Worker("require('worker_threads').parentPort.postMessage('from a thread')", { eval: true });
  const [text] = await once(worker, "message");
  assert.contains(await agent.send(text), "from a thread");
});
