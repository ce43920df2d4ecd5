// The recorded behaviour of @isdk/ai-test-runner through the package. The program's list of intended differences holds
// here, too; what differs only here is in differences.json.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { fileURLToPath } from "node:url";

import { differences, run } from "./compared.js";

const folder = new URL("../../../crates/cli/tests/vectors/isdk/", import.meta.url);
const read = (file, from = folder) => readFileSync(new URL(file, from), "utf8");
const listed = { ...JSON.parse(read("differences.json")), ...JSON.parse(read("differences.json", import.meta.url)) };
const only = process.env.TRIALRUN_VECTOR;

test("every vector agrees or is listed with its reason", async () => {
  const wrong = [];
  let agree = 0;
  let differ = 0;
  for (const line of read("vectors.jsonl").trim().split("\n")) {
    const vector = JSON.parse(line);
    // Packages are not installed here; the program's tests have these.
    if (line.includes("lodash-es#") || (only && !vector.id.startsWith(only))) continue;
    const result = await run(vector, fileURLToPath(new URL("operators", folder)));
    if (only) console.log(vector.id, JSON.stringify(vector), JSON.stringify(result, null, 1));
    const found = differences(vector, result);
    if (found.length > 0 && !(vector.id in listed)) wrong.push(`${vector.id}: ${found.join("; ")}`);
    if (found.length === 0) agree += 1;
    else differ += 1;
  }
  console.log(`${agree} vectors agree, ${differ} differ`);
  assert.ok(wrong.length === 0, `${wrong.length} vectors:\n${wrong.join("\n")}`);
});
