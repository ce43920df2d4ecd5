// A connection to `trialrun rpc`.
"use strict";

const { spawn } = require("node:child_process");
const { createInterface } = require("node:readline");
const { relative } = require("node:path");

const { program } = require("./program.js");
const { inTrace } = require("./traces.js");

const PROTOCOL = 1;

/** Maximum size of an answer in bytes, as for agents that are programs. */
const MAX_ANSWER = 16 << 20;

const UNREACHABLE = -32050;
const GAVE_UP = 1;

/** Seconds in which the program must answer the first request. */
const HANDSHAKE = 30;
const HANDSHAKE_VARIABLE = "TRIALRUN_HANDSHAKE_TIMEOUT";

/** Milliseconds that the program has to end after its standard input was closed. */
const GRACE = 10_000;

/** A request that could not be carried out. */
class TrialrunError extends Error {
  constructor(code, message, data) {
    const hints = (data?.hints ?? []).map((hint) => `\n  help: ${hint}`);
    super((data?.text ? data.text.trimEnd() : message) + hints.join(""));
    this.name = "TrialrunError";
    this.code = code;
    this.data = data ?? {};
  }
}

/** The program ended, or does not speak this version of the protocol. */
class ProtocolError extends TrialrunError {
  constructor(code, message, data) {
    super(code, message, data);
    this.name = "ProtocolError";
  }
}

/** Thrown by an agent if something that it needs cannot be reached. The trial is then broken, not failed. */
class Unreachable extends Error {
  constructor(message) {
    super(message);
    this.name = "Unreachable";
  }
}

/** A process of `trialrun rpc`. */
class Client {
  #child;
  #path;
  #hasSpoken = false;
  #endReason;
  #last = 0;
  #requests = new Map();
  #runs = new Map();
  #callbacks = new Map();
  #stderr = [];
  #ended;
  #isClosed = false;

  /** Starts the program in `directory`. */
  static async open({ directory, path = program() } = {}) {
    const limit = handshakeLimit();
    const client = new Client(path, directory);
    try {
      await client.#initialize(limit);
    } catch (error) {
      // There is nothing yet that the program could clean up.
      client.#kill();
      await client.close();
      if (error instanceof ProtocolError || !(error instanceof TrialrunError)) throw error;
      throw new ProtocolError(error.code, `${path}: ${error.message}`);
    }
    return client;
  }

  /** Starts the connection, and checks that the program speaks this version of the protocol. */
  async #initialize(limit) {
    const { version } = require("./package.json");
    const reason = `it did not answer within ${limit} s (${HANDSHAKE_VARIABLE} sets the limit)`;
    const timer = setTimeout(() => this.#end(this.#foreign(reason)), limit * 1000);
    let result;
    try {
      result = await this.call("initialize", { protocol: PROTOCOL, client: { name: "trialrun-node", version } });
    } finally {
      clearTimeout(timer);
    }
    const spoken = result?.protocol;
    if (spoken === undefined) throw this.#foreign("its answer to `initialize` does not contain a version of the protocol");
    if (spoken !== PROTOCOL) {
      throw new ProtocolError(0, `${this.#path} speaks version ${spoken} of the protocol, and this package speaks version`
        + ` ${PROTOCOL}; install the program and the package of the same version`);
    }
  }

  /** Returns the error for a program that is not trialrun. */
  #foreign(reason) {
    return new ProtocolError(0, [`${this.#path} does not speak the protocol of this package: ${reason}`, ...this.#stderr].join("\n"));
  }

  /** Returns the error for a program that has ended. */
  #gone(code, signal) {
    if (!this.#hasSpoken && code === 2 && this.#stderr.some((line) => line.includes("unrecognized subcommand"))) {
      return new ProtocolError(0, `${this.#path} is too old for this package: update it`);
    }
    const how = signal ?? `exit code ${code}`;
    return new ProtocolError(0, [`${this.#path} ended unexpectedly (${how})`, ...this.#stderr].join("\n"));
  }

  #kill() {
    try {
      const { pid, exitCode, signalCode } = this.#child;
      if (pid !== undefined && exitCode === null && signalCode === null) process.kill(-pid, "SIGKILL");
    } catch {
      // It has ended.
    }
  }

  constructor(path, directory) {
    this.#path = path;
    // A process group of its own: Ctrl-C reaches only this program, which then cancels the run.
    this.#child = spawn(path, ["rpc"], { cwd: directory, stdio: "pipe", detached: true });
    this.#ended = new Promise((resolve) => {
      this.#child.on("error", (error) => resolve(new ProtocolError(0, `cannot start ${path}: ${error.message}`)));
      this.#child.on("close", (code, signal) => resolve(this.#gone(code, signal)));
    });
    this.#ended.then((error) => this.#end(error));
    this.#child.stdin.on("error", () => {});
    createInterface({ input: this.#child.stdout, crlfDelay: Infinity }).on("line", (line) => this.#take(line));
    createInterface({ input: this.#child.stderr }).on("line", (line) => {
      this.#stderr.push(line);
      if (this.#stderr.length > 50) this.#stderr.shift();
    });
  }

  /** Sends a request and resolves to its result. It may call these functions. */
  call(method, params, functions = undefined) {
    return this.#request(method, { ...params, ...settingsOf(functions) }, functions && { functions }).result;
  }

  /** Starts a run. Returns its number, with which it can be cancelled, and its result. */
  start(params, functions = {}, listener = undefined) {
    return this.#request("run", { ...params, ...settingsOf(functions) }, { functions, listener });
  }

  /** Stops the run with this number. */
  async cancel(number) {
    return (await this.call("cancel", { id: number })).found;
  }

  /** Ends the program, which stops all runs. */
  async close() {
    this.#isClosed = true;
    this.#child.stdin.end();
    const later = (signal) => setTimeout(() => this.#child.kill(signal), signal === "SIGKILL" ? 2 * GRACE : GRACE);
    const timers = ["SIGTERM", "SIGKILL"].map(later);
    await this.#ended;
    timers.forEach(clearTimeout);
  }

  #request(method, params, run) {
    const number = ++this.#last;
    if (this.#endReason) return { number, result: Promise.reject(this.#endReason) };
    const result = new Promise((resolve, reject) => this.#requests.set(number, { resolve, reject }));
    if (run) this.#runs.set(number, run);
    this.#send({ id: number, method, params });
    return { number, result };
  }

  #send(message) {
    this.#child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  }

  /** Fails everything that waits for an answer, and all later requests. */
  #end(error) {
    this.#endReason ??= error;
    for (const cancel of this.#callbacks.values()) cancel.abort();
    this.#callbacks.clear();
    for (const { reject } of this.#requests.values()) reject(error);
    this.#requests.clear();
  }

  #take(line) {
    const message = parsed(line);
    if (message === undefined) {
      const shown = line.slice(0, 200).trimEnd();
      if (!this.#hasSpoken) this.#end(this.#foreign(`it wrote a line that is not a message: ${shown}`));
      else this.#stderr.push(`not a message: ${shown}`);
      return;
    }
    this.#hasSpoken = true;
    const { id, method, params } = message;
    if (method === "event") this.#runs.get(params.run)?.listener?.(params);
    else if (Object.hasOwn(CALLBACKS, method)) void this.#answer(id, CALLBACKS[method], params);
    else if (method === "cancelCallback") {
      this.#callbacks.get(params.id)?.abort();
      this.#callbacks.delete(params.id);
    } else if (method === undefined && this.#requests.has(id)) {
      const { resolve, reject } = this.#requests.get(id);
      this.#requests.delete(id);
      this.#runs.delete(id);
      if (message.error) reject(new TrialrunError(message.error.code, message.error.message, message.error.data));
      else resolve(message.result);
    }
  }

  /** Lets a function answer a callback. */
  async #answer(id, { kind, group, call }, params) {
    const controller = new AbortController();
    this.#callbacks.set(id, controller);
    let answer;
    try {
      const { functions } = this.#runs.get(params.run);
      answer = { result: await call(functions[group][params[kind]], params, controller.signal) };
      if (Buffer.byteLength(JSON.stringify(answer)) > MAX_ANSWER) throw new RangeError(`the answer has more than ${MAX_ANSWER >> 20} MiB`);
    } catch (error) {
      answer = { error: { code: error instanceof Unreachable ? UNREACHABLE : GAVE_UP, message: reasonOf(error) } };
    }
    if (this.#callbacks.delete(id) && !this.#isClosed) this.#send({ id, ...answer });
  }
}

/** Returns what the program needs to know about functions of each kind. */
function settingsOf(functions = {}) {
  const groups = Object.entries(functions).filter(([, named]) => Object.keys(named).length > 0);
  const settings = (named) => Object.fromEntries(Object.entries(named).map(([name, { settings }]) => [name, settings]));
  return Object.fromEntries(groups.map(([group, named]) => [group, settings(named)]));
}

/** Callbacks: the parameter with the name of the function, the group of functions, and the call. */
const CALLBACKS = {
  "agent/send": { kind: "agent", group: "agents", call: answered },
  "assertion/check": { kind: "assertion", group: "assertions", call: judged },
  "operator/compare": { kind: "operator", group: "operators", call: compared },
};

async function answered(agent, { message, ...context }, signal) {
  const answer = () => agent.answer(message, { ...context, signal });
  return checked(await (context.traces ? inTrace(context.traces, answer) : answer()));
}

/** An `AssertionError`, such as one of `node:assert`, says that the assertion does not hold. */
async function judged(assertion, { answer, arguments: given, ...context }, signal) {
  try {
    return (await assertion.check(answer ?? "", given, { ...context, answer, signal })) ?? null;
  } catch (error) {
    if (error?.name !== "AssertionError") throw error;
    return { passed: false, reason: reasonOf(error) };
  }
}

async function compared(operator, { actual, expected, options }, signal) {
  return (await operator.compare(actual, expected, options, { signal })) ?? null;
}

/** Returns the message in a line, or undefined if there is none. */
function parsed(line) {
  try {
    const message = JSON.parse(line);
    return typeof message === "object" && message !== null && !Array.isArray(message) ? message : undefined;
  } catch {
    return undefined;
  }
}

function handshakeLimit() {
  const written = process.env[HANDSHAKE_VARIABLE];
  if (!written) return HANDSHAKE;
  const limit = Number(written);
  // Longer timers do not exist.
  if (limit > 0 && limit * 1000 < 2 ** 31) return limit;
  throw new ProtocolError(0, `${HANDSHAKE_VARIABLE} is ${written}, which is not a number of seconds above 0`);
}

/** Returns an answer that can be sent. */
function checked(reply) {
  if (reply === undefined || reply === null) return null;
  if (typeof reply !== "string" && (typeof reply !== "object" || Array.isArray(reply))) {
    throw new TypeError(`an agent must return a string or an object, not ${Array.isArray(reply) ? "a list" : typeof reply}`);
  }
  return reply;
}

/** Describes an error in one line, with the line of the user's code. */
function reasonOf(error) {
  if (!(error instanceof Error)) return `threw ${String(error)}`;
  const text = `${error.name}: ${error.message}`.replace(/\s+/g, " ");
  const frames = (error.stack ?? "").split("\n").filter((line) => /^\s+at /.test(line));
  const own = frames.find((line) => !line.includes("node:") && !line.includes("node_modules") && !line.includes(__dirname));
  const place = own?.match(/(?:file:\/\/)?(\/[^()]*):(\d+):\d+\)?$/);
  return place ? `${text} (${relative(process.cwd(), place[1])}:${place[2]})` : text;
}

module.exports = { Client, TrialrunError, ProtocolError, Unreachable };
