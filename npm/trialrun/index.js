// Runs trials with functions of this program as agents. The program `trialrun` does the work.
"use strict";

const { Client, ProtocolError, TrialrunError, Unreachable } = require("./client.js");

/** Code of errors about tests with problems. */
const INVALID_TESTS = -32002;

/** Makes a function an agent: `agent(fn)` or `agent({ name, sandbox, costs }, fn)`. */
function agent(first, second) {
  const [settings, answer] = typeof first === "function" ? [{}, first] : [first, second];
  if (typeof answer !== "function") throw new TypeError(`an agent must be a function, not ${kindOf(second ?? first)}`);
  const name = settings.name ?? (answer.name.replace(/[^A-Za-z0-9_.-]/g, "-") || "function");
  return { name, sandbox: settings.sandbox ?? false, costs: settings.costs ?? true, answer };
}

/** Returns the kind of a value for an error. */
function kindOf(value) {
  return value === null ? "null" : Array.isArray(value) ? "a list" : typeof value;
}

/** Returns the parameters of a request, and the agents by name. */
function selection(settings) {
  const { targets = [], agent: chosen, agents = [], suites = [], ...options } = settings;
  const named = {};
  const add = (given) => {
    const made = typeof given?.answer === "function" ? given : agent(given);
    if (named[made.name] && named[made.name] !== made) throw new Error(`two agents are called \`${made.name}\``);
    named[made.name] = made;
    return made.name;
  };
  [agents].flat().forEach(add);
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
  return { params: { targets: [targets].flat(), suites, options }, agents: named };
}

function withSettings({ params, agents }) {
  const settings = Object.entries(agents).map(([name, { sandbox, costs }]) => [name, { sandbox, costs }]);
  return { ...params, agents: Object.fromEntries(settings) };
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
    const { number, result } = client.start(params, chosen.agents, listener);
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
  if (settings.agent === undefined) throw new TypeError("`trial` needs `agent`: a function or the name of a configured agent");
  const { expect: assertions = [], files = {}, name = "trial", tags = [], ...rest } = settings;
  if (!Array.isArray(assertions)) throw new TypeError(`\`expect\` must be a list, not ${kindOf(assertions)}`);
  for (const one of assertions) {
    if (typeof one !== "object" || one === null || Array.isArray(one)) {
      throw new TypeError(`each item of \`expect\` must be an object, not ${kindOf(one)}`);
    }
  }
  const suite = { name, turns: [prompt].flat().map((says) => ({ says })) };
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
async function check({ directory, ...rest } = {}) {
  return await withClient({ directory }, (client) => client.call("check", withSettings(selection(rest))));
}

/** Returns the trials that `run` would run. */
async function list({ directory, ...rest } = {}) {
  const listed = await withClient({ directory }, (client) => client.call("list", withSettings(selection(rest))));
  return listed.trials;
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
  const match = async (expected, { strict, diff } = {}) => {
    return await withClient({}, (client) => client.call("expect", { actual, expected, strict, diff }));
  };
  const matches = async (expected, options) => {
    const found = await match(expected, options);
    if (found.passed !== true) throw new MismatchError(found);
    return found;
  };
  return { match, matches };
}

module.exports = {
  Client, MismatchError, ProtocolError, Run, TrialrunError, Unreachable, agent, check, compare, expect, list, run, show, trial,
};
