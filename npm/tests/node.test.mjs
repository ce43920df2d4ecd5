// In node:test: the module, and who is at fault.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { once } from "node:events";
import { test } from "node:test";
import { ProtocolError, TrialrunError, Unreachable, agent, check, compare, expect, list, run, show, trial } from "trialrun";

const program = process.env.TRIALRUN_PROGRAM;
const home = new URL(".", import.meta.url).pathname;
const paris = [{ contains: "Paris" }];
const bot = agent({ costs: false, name: "bot" }, async (message, { history, signal }) => {
  assert.equal(signal.aborted, false);
  return { text: message.includes("France") ? "Paris" : `I do not know. ${history.length}`, tool_calls: [{ name: "think" }] };
});
process.chdir(mkdtempSync(join(tmpdir(), "trialrun-node-")));

const left = () => execFileSync("ps", ["-o", "args=", "--ppid", String(process.pid)], { encoding: "utf8" });

test("a suite runs with a function", async () => {
  writeFileSync("order.yaml", "name: order\nagent: bot\nturns:\n  - says: France?\nassertions:\n  - contains: Paris\n  - tool_called: think\n");
  assert.equal((await check({ targets: "order.yaml", agents: [bot] })).valid, true);
  assert.equal((await list({ targets: "order.yaml", agents: [bot] }))[0].may_cost, false);
  const events = [];
  const finished = await run({ targets: "order.yaml", agents: [bot], onEvent: ({ event }) => events.push(event.type) });
  assert.ok(finished.passed, finished.failure);
  assert.ok(events.includes("step") && events.at(-1) === "run_finished");
  assert.match((await show("order")).text, /Paris/);
  await run({ targets: "order.yaml", agents: [bot] });
  assert.notEqual((await compare()).exit_code, 1);
  assert.doesNotMatch(left(), / rpc/);
});

for (const [name, answer, outcome, reason] of [
  ["throws", () => { throw new RangeError("no idea"); }, "failed", /RangeError: no idea \(.*node\.test\.mjs:\d+\)/],
  ["nothing", () => undefined, "failed", /returned nothing/],
  ["a number", () => 7, "failed", /must return a string or an object, not number/],
  ["too much", () => "x".repeat(17 << 20), "failed", /more than 16 MiB/],
  ["unreachable", () => { throw new Unreachable("no database"); }, "broken", /no database/],
  ["no answer", () => new Promise(() => {}), "failed", /timed out/],
]) {
  test(`the right party is at fault: ${name}`, async () => {
    const settings = { agent: agent({ costs: false, name: "bad" }, answer), expect: paris, timeout: "500ms" };
    const { trials: [found], failure } = await trial("Hi", settings);
    assert.equal(found.outcome, outcome);
    assert.match(failure, reason);
  });
}

test("values are matched, and mistakes are explained", async () => {
  await expect({ a: [1] }).matches({ a: { $contains: 1 } });
  await assert.rejects(expect({ a: [] }).matches({ a: { $contains: 1 } }), /does not match/);
  await assert.rejects(run({ agent: bot, trails: 3 }), (error) => error instanceof TrialrunError && /did you mean `trials`/.test(error.message));
  process.env.TRIALRUN_PROGRAM = "/bin/false";
  await assert.rejects(run({ agent: bot }), ProtocolError);
});

test("a killed client leaves nothing running", async () => {
  process.env.TRIALRUN_PROGRAM = program;
  const script = `import { trial } from "trialrun"; await trial("Hi", { agent: () => { console.log("called"); return new Promise(() => setTimeout(() => {}, 1e6)); }, expect: [{ contains: "x" }] });`;
  writeFileSync(join(home, "client.mjs"), script);
  const client = spawn(process.execPath, [join(home, "client.mjs")]);
  await once(client.stdout, "data");
  const [server] = execFileSync("ps", ["-o", "pid=", "--ppid", String(client.pid)], { encoding: "utf8" }).trim().split("\n").map(Number);
  client.kill("SIGKILL");
  for (let tries = 0; isRunning(server) && tries < 300; tries++) await new Promise((resolve) => setTimeout(resolve, 100));
  assert.equal(isRunning(server), false);
});

function isRunning(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
