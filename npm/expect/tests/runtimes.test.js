// The package in Deno, and in a runtime without files, without Node.js and without `eval`, as on the edge of a network.
// TRIALRUN_TEST_RUNTIMES names a folder with the packages `deno`, `@edge-runtime/vm` and `esbuild`.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

const folder = process.env.TRIALRUN_TEST_RUNTIMES;
const skip = folder ? false : "TRIALRUN_TEST_RUNTIMES is not set";
const page = readFileSync(new URL("../../../docs/how-to/expect-in-javascript.md", import.meta.url), "utf8");
const blocks = [...page.matchAll(/```js\n([^]*?)```/g)].map(([, code]) => code);
const first = blocks.find((code) => code.startsWith("// first.mjs"));
const runner = blocks.find((code) => code.includes("AITestRunner"));

/** Returns a project that has the package. */
function project() {
  const home = mkdtempSync(join(tmpdir(), "trialrun-expect-"));
  mkdirSync(join(home, "node_modules/@trialrun"), { recursive: true });
  const own = (path) => !/\/(engine|tests)$/.test(path);
  cpSync(new URL("..", import.meta.url), join(home, "node_modules/@trialrun/expect"), { recursive: true, filter: own });
  writeFileSync(join(home, "package.json"), '{"type": "module", "dependencies": {"@trialrun/expect": "*"}}');
  writeFileSync(join(home, "first.mjs"), first);
  writeFileSync(join(home, "runner.mjs"), runner);
  return home;
}

test("the examples run in Deno", { skip }, () => {
  const cwd = project();
  const deno = join(folder ?? "", "node_modules/.bin/deno");
  const run = (...given) => spawnSync(deno, ["run", "--no-prompt", ...given], { cwd, encoding: "utf8", env: { ...process.env, NO_COLOR: "1" } });
  assert.match(run("--allow-read", "first.mjs").stdout, /^false 0\.5 \[/);
  assert.equal(run("--allow-read", "runner.mjs").stdout, "1 0\n");
  const refused = run("runner.mjs");
  assert.notEqual(refused.status, 0);
  assert.match(refused.stderr, /--allow-read/);
});

const ENTRY = `
import { init, match } from "@trialrun/expect";
globalThis.finished = (async () => {
  await init(globalThis.wasm);
  const answer = { name: "Ada", tags: ["new"] };
  const { pass, score } = await match(answer, { name: /^B/, tags: { $contains: "new" } });
  const refused = await match(4, { $expr: "actual > 3" }).catch((error) => error.name + ": " + error.message);
  return [pass, score, refused];
})();`;

test("it runs on the edge, and says that expressions do not", { skip }, async () => {
  const cwd = project();
  const { EdgeVM } = createRequire(join(folder, "x.js"))("@edge-runtime/vm");
  writeFileSync(join(cwd, "entry.mjs"), ENTRY);
  const options = ["--bundle", "--format=iife", "--external:node:fs/promises", "--log-level=error", '--define:import.meta.url="file:///edge.js"'];
  const code = execFileSync(join(folder, "node_modules/.bin/esbuild"), ["entry.mjs", ...options], { cwd, encoding: "utf8" });
  const edge = new EdgeVM({ codeGeneration: { strings: false, wasm: true } });
  edge.context.wasm = new WebAssembly.Module(readFileSync(new URL("../expect.wasm", import.meta.url)));
  edge.evaluate(code);
  const [pass, score, refused] = await edge.context.finished;
  assert.deepEqual([pass, score], [false, 0.5]);
  assert.match(refused, /^ExpectationError: expressions need a runtime that allows `new Function`/);
});
