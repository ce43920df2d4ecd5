// Compares what the package does with a recorded situation of @isdk/ai-test-runner. Runs in Node and in browsers.
import { AITestRunner } from "../ai-test-runner.js";

/** Runs a situation. `baseDir` is the folder of its operators. */
export async function run(vector, baseDir) {
  const fixtures = vector.fixtures ?? [vector.fixture];
  const calls = [];
  let at = -1;
  const executor = {
    async execute(asked) {
      calls.push({ i: at, ...asked });
      const answer = Array.isArray(vector.exec) && vector.fixtures ? vector.exec[Math.min(at, vector.exec.length - 1)] : vector.exec;
      if (answer.throw !== undefined) throw new Error(answer.throw);
      return "returns" in answer ? answer.returns : structuredClone(answer);
    },
  };
  const runner = new AITestRunner(executor);
  const events = [];
  runner.on("test:start", ({ i }) => {
    at = i;
    events.push(["start", i]);
  });
  for (const event of ["pass", "fail", "error", "skip"]) runner.on(`test:${event}`, ({ i }) => events.push([event, i]));
  const options = { ...vector.options, ...(["operators", "errors"].includes(vector.area) ? { baseDir } : {}) };
  try {
    return { ...(await runner.run(vector.script ?? "my-script", fixtures, options)), calls, events };
  } catch (error) {
    return { rejected: error };
  }
}

/** Returns the differences; empty if everything agrees. */
export function differences(vector, result) {
  const recorded = vector.expect;
  if (recorded.runRejected) return result.rejected ? [] : ["the run is not rejected"];
  if (result.rejected) return [`the run is rejected: ${result.rejected.stack}`];
  const wrong = [];
  if (recorded.logs) {
    for (const key of ["passedCount", "failedCount", "skippedCount"]) {
      if (result[key] !== recorded[key]) wrong.push(`${key} ${result[key]} instead of ${recorded[key]}`);
    }
    recorded.logs.forEach((log, i) => {
      wrong.push(...ofCase(vector, log, result.logs[i], result.calls.find((call) => call.i === i)).map((wrong) => `case ${i}: ${wrong}`));
    });
    for (const was of Array.isArray(recorded.args) ? recorded.args : []) {
      const call = result.calls.find((call) => call.i === was.i);
      if (call === undefined) continue;
      if (!same(was.args, plain(call.args))) wrong.push(`args are ${JSON.stringify(call.args)} instead of ${JSON.stringify(was.args)}`);
      if (was.script !== undefined && was.script !== call.script) wrong.push(`the script is ${call.script} instead of ${was.script}`);
    }
    return wrong;
  }
  return ofCase(vector, recorded, result.logs[0], result.calls[0]);
}

function ofCase(vector, recorded, log, call) {
  const status = log.skipped ? "skip" : log.error ? "error" : log.passed ? "pass" : "fail";
  // A mistake in an expectation is the fixture's error, before anything runs. There, it could only fail.
  if (log.error?.name === "ExpectationError" && recorded.status === "fail") return [];
  if (status !== recorded.status) {
    return [`${status} instead of ${recorded.status} (${log.error?.message ?? JSON.stringify(log.failures)})`];
  }
  if (status === "error" || status === "skip") return [];
  const wrong = [];
  number(wrong, "score", recorded.score, log.score);
  if ("maxScore" in recorded) number(wrong, "maxScore", recorded.maxScore, log.maxScore);
  if ("passScore" in recorded) number(wrong, "passScore", recorded.passScore, log.passScore);
  const keys = (failures = []) => failures.filter(({ undecided }) => !undecided).map(({ key, critical = false }) => ({ key, critical }));
  equal(wrong, "failures", keys(recorded.failures), keys(log.failures));
  equal(wrong, "failed critical", recorded.failedCritical ?? [], log.failedCritical ?? []);
  if (recorded.scoreDetails) children(wrong, recorded.scoreDetails, log.scoreDetails, true);
  for (const field of vector.check ?? []) ofField(wrong, field, recorded, log, call);
  return wrong;
}

function children(wrong, recorded = [], details = [], areParts = false) {
  if (recorded.length !== details.length) {
    equal(wrong, "details", recorded.map(({ key }) => key), details.map(({ key }) => key));
    return;
  }
  recorded.forEach((was, at) => {
    const own = details[at];
    for (const key of ["key", "title", "dimension"]) equal(wrong, `${key} of ${was.key}`, was[key] ?? null, own[key] ?? null);
    number(wrong, `weight of ${was.key}`, was.weight, own.weight);
    number(wrong, `score of ${was.key}`, was.score, own.score);
    if (!areParts) {
      equal(wrong, `passed of ${was.key}`, was.passed, own.pass);
      equal(wrong, `critical of ${was.key}`, was.critical ?? false, own.critical ?? false);
    }
    children(wrong, was.children, own.details);
  });
}

function ofField(wrong, field, recorded, log, call) {
  const was = recorded[field];
  if (was === undefined || field === "events") return;
  const own = field === "args" ? call?.args : log[field];
  if (field === "tools" && !Array.isArray(was) && log.tools === undefined) return;
  if (field === "args" && Array.isArray(was)) return;
  if (!same(was, plain(own) ?? null)) wrong.push(`${field} is ${JSON.stringify(own)} instead of ${JSON.stringify(was)}`);
}

function number(wrong, what, was, own) {
  const agrees = typeof was === "number" ? Math.abs(was - own) <= 1e-9 : own === undefined || own === null;
  if (!agrees) wrong.push(`${what} ${own} instead of ${was}`);
}

function equal(wrong, what, was, own) {
  if (!same(was, own)) wrong.push(`${what} ${JSON.stringify(own)} instead of ${JSON.stringify(was)}`);
}

function same(was, own) {
  if (was === null || own === null || typeof was !== "object" || typeof own !== "object") return was === own;
  if (Array.isArray(was) !== Array.isArray(own)) return false;
  const keys = Object.keys(was);
  return keys.length === Object.keys(own).length && keys.every((key) => key in own && same(was[key], own[key]));
}

function plain(value) {
  const text = JSON.stringify(value);
  return text === undefined ? undefined : JSON.parse(text);
}
