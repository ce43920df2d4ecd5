// The vectors in Chromium, from files that a server on this machine serves.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";

const browser = process.env.TRIALRUN_TEST_BROWSER;
const root = new URL("../../../", import.meta.url);
const TYPES = { html: "text/html", js: "text/javascript", json: "application/json", wasm: "application/wasm" };

const PAGE = `<script type="module">
  import { differences, run } from "/npm/expect/tests/compared.js";
  const folder = "/crates/cli/tests/vectors/isdk/";
  const read = async (path) => (await fetch(path)).text();
  const listed = { ...JSON.parse(await read(folder + "differences.json")), ...JSON.parse(await read("/npm/expect/tests/differences.json")) };
  const wrong = [];
  let count = 0;
  try {
    for (const line of (await read(folder + "vectors.jsonl")).trim().split("\\n")) {
      if (line.includes("lodash-es#")) continue;
      const vector = JSON.parse(line);
      const found = differences(vector, await run(vector, location.origin + folder + "operators"));
      if (found.length > 0 && !(vector.id in listed)) wrong.push(vector.id + ": " + found.join("; "));
      count += 1;
    }
  } catch (error) {
    wrong.push(String(error.stack));
  }
  await fetch("/done", { method: "POST", body: JSON.stringify({ wrong, count }) });
</script>`;

test("every vector agrees in Chromium", { skip: browser ? false : "needs TRIALRUN_TEST_BROWSER" }, async () => {
  const profile = mkdtempSync(join(tmpdir(), "expect-browser-"));
  let process;
  const server = createServer();
  try {
    const result = await new Promise((done, failed) => {
      server.on("request", (request, response) => {
        const { pathname } = new URL(request.url, "http://localhost");
        if (pathname === "/done") {
          let body = "";
          request.on("data", (chunk) => (body += chunk));
          request.on("end", () => done(JSON.parse(body)));
          response.end();
          return;
        }
        try {
          const body = pathname === "/" ? PAGE : readFileSync(new URL(`.${pathname}`, root));
          response.writeHead(200, { "content-type": TYPES[pathname.split(".").at(-1)] ?? TYPES.html }).end(body);
        } catch {
          response.writeHead(404).end();
        }
      });
      server.listen(0, "127.0.0.1", () => {
        const options = ["--headless", "--no-sandbox", "--disable-gpu", `--user-data-dir=${profile}`];
        process = spawn(browser, [...options, `http://127.0.0.1:${server.address().port}/`], { stdio: "ignore" });
        process.on("error", failed);
        process.on("exit", (code) => failed(new Error(`the browser ended with ${code}`)));
      });
    });
    assert.ok(result.wrong.length === 0, result.wrong.join("\n"));
    assert.ok(result.count > 2000, String(result.count));
  } finally {
    process?.removeAllListeners("exit");
    if (process?.kill()) await once(process, "exit");
    server.close();
    server.closeAllConnections();
    // Processes of the browser write to its profile for a moment after it has ended.
    rmSync(profile, { recursive: true, force: true, maxRetries: 20 });
  }
});
