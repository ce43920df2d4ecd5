import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { gzipSync } from "node:zlib";

import { AITestRunner } from "../ai-test-runner.js";
import { ExpectationError, compile, diff, expect, match, render } from "../index.js";

test("a value is matched and scored, and each mismatch has its path", async () => {
  const expected = { name: /^A/, tags: { $contains: "new" } };
  const whole = await match({ name: "Ada", tags: ["new"] }, expected);
  assert.deepEqual([whole.pass, whole.score, whole.failures], [true, 1, []]);
  const half = await match({ name: "Ada", tags: [] }, expected);
  assert.deepEqual([half.pass, half.score, half.failures.map(({ key }) => key)], [false, 0.5, ["tags"]]);
});

test("`expect` throws an error with what does not match", async () => {
  await expect("Hello, Ada").matches("/Ada/i");
  await assert.rejects(() => expect({ a: 1 }).matches({ a: 2 }), { name: "AssertionError", message: /the value does not match\n {2}a: / });
  await expect({ a: 1 }).not.matches({ a: 2 });
  await assert.rejects(() => expect({ a: 1 }).not.matches({ a: 1 }), /matches, but should not/);
});

test("an expectation that cannot be used is an error with a suggestion", async () => {
  await assert.rejects(() => match(1, { $gtt: 1 }), (error) => error instanceof ExpectationError && /\$gt/.test(error.message));
  await assert.rejects(() => match(1, { $expr: "actual >" }), /not a JavaScript expression/);
});

test("what JSON cannot represent is refused, and large integers are exact", async () => {
  for (const value of [new Set([1]), new Map([[1, 2]]), new Error("a"), NaN, Infinity, Symbol("a"), () => 1, new Uint8Array(2)]) {
    await assert.rejects(() => match({ value }, { value: 1 }), /cannot be matched/);
  }
  assert.equal((await match(12345678901234567890n, 12345678901234567891n)).pass, false);
  assert.equal((await match(12345678901234567890n, 12345678901234567890n)).pass, true);
  assert.equal((await match({ at: new Date(0) }, { at: "1970-01-01T00:00:00.000Z" })).pass, true);
});

test("unknown options are errors, and fixtures that expect nothing do not pass", async () => {
  await assert.rejects(() => match(1, 1, { operatrs: {} }), /unknown option `operatrs`/);
  const operators = { isOne: (actual) => actual === 1 };
  await expect(1).matches({ $isOne: true }, { operators });
  const runner = new AITestRunner({ async execute() { return { output: "Hello" }; } });
  const { passedCount, logs } = await runner.run("s", [{ input: "Hi", expects: { output: "Hello" } }]);
  assert.equal(passedCount, 0);
  assert.match(logs[0].error.message, /expects nothing/);
});

test("a value that contains itself is an error", async () => {
  const value = {};
  value.own = value;
  await assert.rejects(() => match(value, 1), /contains itself/);
});

test("operators are functions, may wait, and match parts", async () => {
  const later = (value) => new Promise((done) => setImmediate(done, value));
  const operators = {
    isEven: (actual) => actual % 2 === 0 || `${actual} is odd`,
    slow: async (actual, wanted) => (await later(actual)) === wanted,
    both: async (actual, wanted, fixture) => {
      const first = await fixture.$validate(actual.a, wanted.a);
      return (await later(true)) && first.pass && fixture.$validate(actual.b, wanted.b);
    },
  };
  assert.equal((await match(4, { $isEven: true }, { operators })).pass, true);
  assert.equal((await match(3, { $isEven: true }, { operators })).failures[0].message, "3 is odd");
  assert.equal((await match([1, 2], { $all: [{ $slow: 2 }, { $slow: 1 }] }, { operators })).pass, true);
  assert.equal((await match({ a: 1, b: "x" }, { $both: { a: 1, b: /x/ } }, { operators })).pass, true);
  assert.equal((await match({ a: 1, b: "y" }, { $both: { a: 1, b: /x/ } }, { operators })).pass, false);
});

test("an operator that throws decides nothing", async () => {
  const operators = { broken: () => { throw new Error("no network"); } };
  const { pass, failures } = await match(1, { $broken: true }, { operators });
  assert.equal(pass, null);
  assert.match(failures[0].message, /no network/);
});

test("a compiled expectation judges many values at once", async () => {
  const compiled = await compile({ n: { $gte: 2 } }, { operators: {} });
  const results = await Promise.all([1, 2, 3].map((n) => compiled.judge({ n })));
  assert.deepEqual(results.map(({ pass }) => pass), [false, true, true]);
  compiled.release();
  await assert.rejects(() => compiled.judge({ n: 1 }), /released/);
});

test("templates and diffs", async () => {
  assert.equal(await render("Hello {{ user.name | upper }}!", { user: { name: "Ann" } }), "Hello ANN!");
  assert.deepEqual(await render({ who: "{{ user }}" }, { user: { id: 1 } }), { who: { id: 1 } });
  await assert.rejects(() => render("{{ missing }}"), ExpectationError);
  const parts = await diff("one two three four five", "one two 3 four five");
  assert.deepEqual(parts.filter(({ added }) => added).map(({ value }) => value), ["3"]);
  await assert.rejects(() => diff("a", "b", "bytes"), /the kinds are/);
});

test("the quick start of @isdk/ai-test-runner", async () => {
  const myExecutor = { async execute() { return { output: "Hello World", messages: [] }; } };
  const fixtures = [{ input: "Hi", expect: { output: /Hello/i } }, { input: "Hi", expect: { output: (actual) => actual.length > 20 || "Output is too short" } }];
  const result = await new AITestRunner(myExecutor).run("my-script-id", fixtures);
  assert.deepEqual([result.passedCount, result.failedCount], [1, 1]);
  assert.equal(result.logs[1].failures[0].message, "Output is too short");
});

test("the module is at most 1 MB when compressed", () => {
  const size = gzipSync(readFileSync(new URL("../expect.wasm", import.meta.url)), { level: 9 }).length;
  assert.ok(size <= 1_000_000, `${size} bytes`);
});
