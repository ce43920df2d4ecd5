// Runs trials with functions of this program as agents. The program `trialrun` does the work.
"use strict";

const { Client, ProtocolError, TrialrunError, Unreachable } = require("./client.js");
const { api, spanProcessor } = require("./traces.js");

/** Code of errors about tests with problems. */
const INVALID_TESTS = -32002;

/** Makes a function an agent: `agent(fn)` or `agent({ name, sandbox, costs, traces }, fn)`. */
function agent(first, second) {
  const [settings, answer] = typeof first === "function" ? [{}, first] : [first, second];
  if (typeof answer !== "function") throw new TypeError(`an agent must be a function, not ${kindOf(second ?? first)}`);
  mustBeObject(settings, "the settings of an agent must be", "{ name: \"bot\" }");
  const name = settings.name ?? (answer.name.replace(/[^A-Za-z0-9_.-]/g, "-") || "function");
  const described = { sandbox: settings.sandbox ?? false, costs: settings.costs ?? true };
  if (settings.traces !== undefined) {
    if (settings.traces !== "otlp") throw new TypeError(`\`traces\` must be "otlp", not ${JSON.stringify(settings.traces)}`);
    api();
    described.traces = settings.traces;
  }
  return { name, ...described, settings: described, answer };
}

/** Makes a function an assertion: `assertion(fn)` or `assertion({ name, timeout }, fn)`. */
function assertion(first, second) {
  const { name, settings, fn } = named("an assertion", first, second);
  return { name, settings, check: fn };
}

/** Makes a function an operator: `operator(fn)` or `operator({ name, timeout }, fn)`. */
function operator(first, second) {
  const { name, settings, fn } = named("an operator", first, second);
  return { name: name.startsWith("$") ? name : `$${name}`, settings, compare: fn };
}

function named(kind, first, second) {
  const [{ name, timeout }, fn] = typeof first === "function" ? [{}, first] : [first ?? {}, second];
  if (typeof fn !== "function") throw new TypeError(`${kind} must be a function, not ${kindOf(second ?? first)}`);
  if (typeof first !== "function") mustBeObject(first ?? {}, `the settings of ${kind} must be`, "{ name: \"short\" }");
  const own = name ?? fn.name;
  if (!own) throw new TypeError(`${kind} needs a name: name the function, or pass \`{ name }\``);
  return { name: own, settings: timeout === undefined ? {} : { timeout_ms: timeout }, fn };
}

/** Returns the kind of a value for an error. */
function kindOf(value) {
  return value === null ? "null" : Array.isArray(value) ? "a list" : typeof value;
}

/** Throws an error that has an `example`, unless `value` is an object with keys. */
function mustBeObject(value, what, example) {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new TypeError(`${what} an object, such as \`${example}\`, not ${kindOf(value)}`);
  }
}

/** Returns functions by name. */
function byName(kind, given, call, make) {
  const all = {};
  const add = (one) => {
    const made = typeof one?.[call] === "function" ? one : make(one);
    if (all[made.name] && all[made.name] !== made) throw new Error(`two ${kind} are called \`${made.name}\``);
    all[made.name] = made;
    return made.name;
  };
  [given].flat().forEach(add);
  return { all, add };
}

/** Returns suites with regular expressions as they are written in files: JSON has none. */
function asWritten(value) {
  if (value instanceof RegExp) return String(value);
  if (Array.isArray(value)) return value.map(asWritten);
  const isPlain = typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;
  return isPlain ? Object.fromEntries(Object.entries(value).map(([key, one]) => [key, asWritten(one)])) : value;
}

/** Returns the parameters of a request, and the functions by name. */
function selection(settings) {
  const { targets = [], agent: chosen, agents = [], assertions = [], operators = [], suites = [], ...options } = settings;
  const { all, add } = byName("agents", agents, "answer", agent);
  if (chosen !== undefined) {
    const listed = [chosen].flat();
    if (!listed.length) throw new TypeError("`agent` is an empty list");
    for (const one of listed) {
      if (typeof one !== "string" && typeof one !== "function" && typeof one?.answer !== "function") {
        throw new TypeError(`\`agent\` must be a function or the name of a configured agent, not ${kindOf(one)}`);
      }
    }
    options.agent = listed.map((one) => (typeof one === "string" ? one : add(one)));
  }
  const functions = {
    agents: all,
    assertions: byName("assertions", assertions, "check", assertion).all,
    operators: byName("operators", operators, "compare", operator).all,
  };
  return { params: { targets: [targets].flat(), suites: asWritten(suites), options }, functions };
}

async function withClient(settings, use) {
  const client = await Client.open({ directory: settings.directory });
  try {
    return await use(client);
  } finally {
    await client.close();
  }
}

/** A finished run. */
class Run {
  constructor(result, trials, texts) {
    const { run, exit_code, problems_text, ...rest } = result;
    Object.assign(this, rest, { id: run, exitCode: exit_code, trials });
    Object.defineProperty(this, "texts", { value: [problems_text, ...texts.values()] });
  }

  /** True if everything passed. */
  get passed() {
    return this.exitCode === 0;
  }

  /** The trials that did not pass, with their findings; empty if the run passed. */
  get failure() {
    if (this.passed) return "";
    const parts = this.stopped_by ? [...this.texts, `the run was stopped: ${this.stopped_by}`] : this.texts;
    return parts.filter(Boolean).map((text) => text.replace(/\n+$/, "")).join("\n") || this.text;
  }
}

/** Runs tests and records the run. */
async function run(settings = {}) {
  mustBeObject(settings, "`run` takes", "{ targets: [\"tests\"] }");
  const { directory, onEvent, signal, ...rest } = settings;
  const chosen = selection(rest);
  const [trials, texts] = [[], new Map()];
  const listener = ({ event, text }) => {
    if (event.event.type === "trial_finished") {
      trials.push(event.event);
      if (text) texts.set(event.event.id, text);
    }
    onEvent?.(event);
  };
  return await withClient({ directory }, async (client) => {
    const params = { ...chosen.params, events: onEvent ? "all" : "trials" };
    const { number, result } = client.start(params, chosen.functions, listener);
    const stop = () => void client.cancel(number).catch(() => {});
    signal?.addEventListener("abort", stop);
    process.on("SIGINT", stop);
    try {
      return new Run(await result, trials, texts);
    } finally {
      signal?.removeEventListener("abort", stop);
      process.removeListener("SIGINT", stop);
    }
  });
}

/** Runs one case that is written in JavaScript. */
async function trial(prompt, settings = {}) {
  const messages = [prompt].flat();
  const wrong = messages.findIndex((says) => typeof says !== "string");
  if (!messages.length || wrong >= 0) {
    const given = messages.length ? kindOf(messages[wrong]) : "an empty list";
    throw new TypeError(`the prompt must be a string or a list of strings, not ${given}`);
  }
  mustBeObject(settings, "the second argument of `trial` must be", "{ agent: bot }");
  if (settings.agent === undefined) throw new TypeError("`trial` needs `agent`: a function or the name of a configured agent");
  const { expect: assertions = [], expects, files = {}, name = "trial", tags = [], ...rest } = settings;
  if (expects !== undefined) throw new TypeError("`trial` has no `expects` (did you mean `expect`?)");
  if (!Array.isArray(assertions)) throw new TypeError(`\`expect\` must be a list, not ${kindOf(assertions)}`);
  for (const one of assertions) {
    if (typeof one !== "object" || one === null || Array.isArray(one)) {
      throw new TypeError(`each item of \`expect\` must be an object, not ${kindOf(one)}`);
    }
    for (const key of ["contains", "not_contains"]) {
      if (!(one[key] instanceof RegExp)) continue;
      throw new TypeError(`\`${key}\` takes a text, and \`${key.replace("contains", "matches")}\` a regular expression`);
    }
  }
  mustBeObject(files, "`files` must be", "{ \"notes.md\": \"text\" }");
  const suite = { name, turns: messages.map((says) => ({ says })) };
  if (tags.length) suite.tags = tags;
  if (assertions.length) suite.assertions = assertions;
  const written = Object.entries(files).map(([path, content]) => ({ path, content }));
  if (written.length) suite.fixtures = { files_unstaged: written };
  const plain = name.replace(/[^\p{L}\p{N}_.-]/gu, "-").replace(/^[-_.]+/, "") || "trial";
  const finished = await run({ ...rest, suites: [{ name: plain, suite }] });
  const { problems, texts: [text] } = finished;
  const error = problems.find(({ severity }) => severity === "error");
  if (error) throw new TrialrunError(INVALID_TESTS, error.message, { problems, text });
  return finished;
}

/** Reads and compiles tests, without running anything. */
async function check(settings = {}) {
  mustBeObject(settings, "`check` takes", "{ targets: [\"tests\"] }");
  const { directory, ...rest } = settings;
  const { params, functions } = selection(rest);
  return await withClient({ directory }, (client) => client.call("check", params, functions));
}

/** Returns the trials that `run` would run. */
async function list(settings = {}) {
  mustBeObject(settings, "`list` takes", "{ targets: [\"tests\"] }");
  const { directory, ...rest } = settings;
  const { params, functions } = selection(rest);
  return (await withClient({ directory }, (client) => client.call("list", params, functions))).trials;
}

/** Returns a recorded trial, as text and as JSON. */
async function show(wanted, { directory } = {}) {
  return await withClient({ directory }, (client) => client.call("show", { trial: wanted }));
}

/** Compares two recorded runs. */
async function compare(before = "previous", after = "latest", { directory } = {}) {
  return await withClient({ directory }, (client) => client.call("compare", { before, after }));
}

/** A value does not match its expectation. */
class MismatchError extends Error {
  constructor(match) {
    const verdict = match.passed === false ? "the value does not match" : "it cannot be decided whether the value matches";
    super(`${verdict}\n${match.text}`.trimEnd());
    this.name = "MismatchError";
    this.match = match;
  }
}

/** Matches a value with the `$operator` engine: `await expect(value).matches({ name: "/^A/" })`. */
function expect(actual) {
  const match = async (expected, { strict, diff, operators = [] } = {}) => {
    const functions = { operators: byName("operators", operators, "compare", operator).all };
    return await withClient({}, (client) => client.call("expect", { actual, expected, strict, diff }, functions));
  };
  const matches = async (expected, options) => {
    const found = await match(expected, options);
    if (found.passed !== true) throw new MismatchError(found);
    return found;
  };
  return { match, matches };
}

module.exports = {
  Client, MismatchError, ProtocolError, Run, TrialrunError, Unreachable, agent, assertion, check, compare, expect, list,
  operator, run, show, spanProcessor, trial,
};
