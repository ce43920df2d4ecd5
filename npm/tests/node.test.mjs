// In node:test: the module, and who is at fault.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { once } from "node:events";
import { test } from "node:test";
import { ProtocolError, TrialrunError, Unreachable, agent, assertion, check, compare, expect, list, operator, run, show, trial } from "trialrun";

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
    const timeout = reason.test("timed out") ? "500ms" : "60s";
    const settings = { agent: agent({ costs: false, name: "bad" }, answer), expect: paris, timeout };
    const { trials: [found], failure } = await trial("Hi", settings);
    assert.equal(found.outcome, outcome);
    assert.match(failure, reason);
  });
}

test("functions are assertions and operators", async () => {
  const atMostWords = assertion({ name: "at_most_words" }, (answer, limit) => {
    assert.ok(answer.split(" ").length <= limit, `it has ${answer.split(" ").length} words`);
    return true;
  });
  const about = async (answer, { topic }, { result }) => ({ passed: result.messages[1].content.includes(topic), reason: topic });
  const even = operator(function even(actual, expected) {
    return (actual.length % 2 === 0) === expected || `it has ${actual.length} letters`;
  });
  const settings = { agent: bot, assertions: [atMostWords, about], operators: [even] };
  const all = [{ at_most_words: 1 }, { type: "about", topic: "Paris" }, { expect: { output: { $even: false } } }];
  const passed = await trial("France?", { ...settings, expect: all });
  assert.ok(passed.passed, passed.failure);
  const failed = await trial("Spain?", { ...settings, expect: [{ at_most_words: 2 }, { expect: { output: { $even: true } } }] });
  assert.match(failed.failure, /AssertionError: it has 5 words/);
  await expect("ab").matches({ $even: true }, { operators: [even] });
  await assert.rejects(expect("abc").matches({ $even: true }, { operators: [even] }), /it has 3 letters/);
  assert.equal((await expect("abc").match({ $even: true }, { operators: [operator({ name: "even" }, () => {})] })).passed, null);
  assert.throws(() => assertion(() => true), /an assertion needs a name/);
});

for (const [name, check, reason] of [
  ["throws", () => { throw new RangeError("no idea"); }, /`mistaken`: RangeError: no idea \(.*node\.test\.mjs:\d+\)/],
  ["nothing", () => {}, /it returned nothing/],
  ["a number", () => 1, /it must return true, false/],
  ["too much", () => ({ passed: true, reason: "x".repeat(17 << 20) }), /more than 16 MiB/],
  ["no answer", () => new Promise(() => {}), /it did not answer within 0.5 s/],
]) {
  test(`a mistake in an assertion breaks the trial: ${name}`, async () => {
    const timeout = name === "no answer" ? 500 : 30_000;
    const settings = { agent: bot, expect: [{ mistaken: true }, { contains: "x" }], assertions: [assertion({ name: "mistaken", timeout }, check)] };
    const { trials: [found] } = await trial("Hi", settings);
    assert.deepEqual([found.outcome, found.fault], ["broken", "test"]);
    assert.match(found.because, reason);
  });
}

test("values are matched, and mistakes are explained", async () => {
  await expect({ a: [1] }).matches({ a: { $contains: 1 } });
  await assert.rejects(expect({ a: [] }).matches({ a: { $contains: 1 } }), /does not match/);
  await assert.rejects(run({ agent: bot, trails: 3 }), (error) => error instanceof TrialrunError && /did you mean `trials`/.test(error.message));
  await assert.rejects(trial("Hi", { agent: bot, expect: [{ containz: "x" }] }), /unknown assertion type `containz`[^]*did you mean `contains`/);
  await assert.rejects(trial("Hi", { agent: bot, expect: { contains: "x" } }), /`expect` must be a list, not object/);
  await assert.rejects(trial("Hi", { agent: bot, expect: ["x"] }), /each item of `expect` must be an object, not string/);
  await assert.rejects(trial("Hi", { expect: paris }), /`trial` needs `agent`/);
  await assert.rejects(trial("Hi"), /`trial` needs `agent`/);
  for (const [prompt, kind] of [[3, "number"], [undefined, "undefined"], [["a", null], "null"], [[], "an empty list"]]) {
    const explained = { name: "TypeError", message: `the prompt must be a string or a list of strings, not ${kind}` };
    await assert.rejects(trial(prompt, { agent: bot }), explained);
  }
  await assert.rejects(list({ targets: "none.yaml" }), /`none.yaml` is neither a file/);
  for (const wrong of [7, null, { name: "bot" }]) {
    await assert.rejects(trial("Hi", { agent: wrong, expect: paris }), /`agent` must be a function or the name of a configured agent, not/);
  }
  await assert.rejects(trial("Hi", { agent: [], expect: paris }), /`agent` is an empty list/);
  await assert.rejects(run("tests"), /`run` takes an object, such as `\{ targets: \["tests"\] \}`, not string/);
  await assert.rejects(check(["tests"]), /`check` takes an object, .*, not a list/);
  await assert.rejects(trial({ agent: bot }), /the prompt must be a string or a list of strings, not object/);
  await assert.rejects(trial("Hi", { agent: bot, expects: paris }), /no `expects` \(did you mean `expect`\?\)/);
  await assert.rejects(trial("Hi", { agent: bot, files: ["notes.md"] }), /`files` must be an object, .*, not a list/);
  await assert.rejects(trial("Hi", { agent: bot, expect: [{ contains: /Par/ }] }), /`matches` a regular expression/);
  assert.throws(() => agent("bot", () => "x"), /the settings of an agent must be an object/);
  assert.ok((await trial("France?", { agent: bot, expect: [{ matches: /^par/i }] })).passed);
  await assert.rejects(run({ agents: ["bot"] }), /an agent must be a function, not string/);
});

for (const [script, reason] of [
  [answering({ id: 1, error: { code: -32001, message: "trialrun 9 speaks version 2" } }), /other: trialrun 9 speaks/],
  [answering({ id: 1, result: { protocol: 2 } }), /other speaks version 2 of the protocol, and this package speaks version 1/],
  [answering({ id: 1, result: {} }), /other does not speak .*: its answer .* does not contain a version/],
  [answering([1]), /other does not speak .*: it wrote a line that is not a message: \[1\]/],
  ["echo Hello; exec sleep 3600", /other does not speak .*: it wrote a line that is not a message: Hello/],
  ["exec sleep 3600", /other does not speak the protocol of this package: it did not answer within 0.5 s/],
  ["echo \"error: unrecognized subcommand 'rpc'\" >&2; exit 2", /other is too old for this package: update it/],
  ["echo 'no such command' >&2; exit 2", /other ended unexpectedly \(exit code 2\)\nno such command/],
]) {
  test(`another program is refused: ${script}`, async () => {
    writeFileSync("other", `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    process.env.TRIALRUN_PROGRAM = "./other";
    if (reason.source.includes("did not answer")) process.env.TRIALRUN_HANDSHAKE_TIMEOUT = "0.5";
    try {
      await assert.rejects(run({ agent: bot }), (error) => error instanceof ProtocolError && reason.test(error.message));
      assert.doesNotMatch(left(), /other/);
    } finally {
      process.env.TRIALRUN_PROGRAM = program;
      delete process.env.TRIALRUN_HANDSHAKE_TIMEOUT;
    }
  });
}

test("the program is found in PATH, and the script of this package is not", async () => {
  const { PATH } = process.env;
  mkdirSync("script");
  mkdirSync("bin");
  writeFileSync("script/trialrun", "#!/usr/bin/env node\n", { mode: 0o755 });
  delete process.env.TRIALRUN_PROGRAM;
  try {
    process.env.PATH = `${process.cwd()}/script:${PATH}`;
    await assert.rejects(check(), /is installed. Put the program `trialrun` into PATH, or name it with TRIALRUN_PROGRAM/);
    symlinkSync(program, "bin/trialrun");
    process.env.PATH = `${process.cwd()}/script:${process.cwd()}/bin:${PATH}`;
    await expect(1).matches(1);
    process.env.TRIALRUN_PROGRAM = "/no/such/program";
    await assert.rejects(check(), /cannot start \/no\/such\/program/);
  } finally {
    Object.assign(process.env, { PATH, TRIALRUN_PROGRAM: program });
  }
});

test("a killed client leaves nothing running", async () => {
  const script = `import { trial } from "trialrun"; await trial("Hi", { agent: () => { console.log("called"); return new Promise(() => setTimeout(() => {}, 1e6)); }, expect: [{ contains: "x" }] });`;
  writeFileSync(join(home, "client.mjs"), script);
  const client = spawn(process.execPath, [join(home, "client.mjs")]);
  await once(client.stdout, "data");
  const [server] = execFileSync("ps", ["-o", "pid=", "--ppid", String(client.pid)], { encoding: "utf8" }).trim().split("\n").map(Number);
  client.kill("SIGKILL");
  for (let tries = 0; isRunning(server) && tries < 300; tries++) await new Promise((resolve) => setTimeout(resolve, 100));
  assert.equal(isRunning(server), false);
});

/** Returns the script of a program that answers its first request. */
function answering(message) {
  return `read line; echo '${JSON.stringify(message)}'; cat > /dev/null`;
}

function isRunning(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
