// The WebAssembly module, and what it asks of JavaScript: regular expressions, expressions and functions.

// Keys of maps that stand for what JSON lacks.
const REGEX = "\u0001regex";
const FUNCTION = "\u0001function";
/** Begins a string that stands for an integer of any size. */
const BIG = "\u0001integer ";

/** Thrown in an operator that asks for a match, to call it again with the answer. */
const ASKED = Symbol("asked");

const AsyncFunction = (async () => {}).constructor;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** An expectation that cannot be used. `problems` has one entry for each mistake. */
export class ExpectationError extends Error {
  constructor(problems) {
    super(problems.map(({ message, help }) => [message, ...help].join("; ")).join("\n"));
    this.name = "ExpectationError";
    this.problems = problems;
  }
}

let engine;

/**
 * Prepares the engine. It is called by everything else. Call it yourself where the module cannot be read from a file or
 * a URL: edge runtimes import `@trialrun/expect/expect.wasm` as a `WebAssembly.Module`.
 */
export function init(source) {
  engine ??= start(source).catch((error) => {
    engine = undefined;
    throw error;
  });
  return engine;
}

async function start(source = new URL("./expect.wasm", import.meta.url)) {
  const started = new Engine();
  const imports = { trialrun: { ask: (at, length) => started.answer(at, length) } };
  started.exports = (await instance(source, imports)).exports;
  return started;
}

async function instance(source, imports) {
  if (source instanceof URL || typeof source === "string") {
    const url = new URL(source, import.meta.url);
    if (url.protocol === "file:") {
      const { readFile } = await import(/* @vite-ignore */ "node:fs/promises");
      source = await readFile(url);
    } else {
      const response = await fetch(url);
      if (!response.ok) throw new Error(`${url} cannot be loaded: ${response.status} ${response.statusText}`);
      source = await response.arrayBuffer();
    }
  }
  const made = await WebAssembly.instantiate(source, imports);
  // A module becomes an instance, and bytes become both.
  return made.instance ?? made;
}

class Engine {
  exports;
  /** Compiled regular expressions by source and flags, and expressions by text and names. */
  #regexes = new Map();
  #expressions = new Map();
  /** Functions in expectations, by their names in the engine. */
  #functions = new Map();
  #last = 0;
  /** Calls that wait for the answer to a match, the innermost one last. */
  #frames = [];
  /** Results that are known from earlier attempts of the same match, and those that are awaited. */
  #attempt = { known: new Map(), seen: new Map(), awaited: [] };

  /** Sends a request to the engine. */
  request(request) {
    this.#write(JSON.stringify(request).replaceAll(/"\\u0001integer (-?\d+)"/g, "$1"));
    const length = this.exports.call();
    const answer = this.#read(this.exports.output(), length);
    if (answer.error !== undefined && answer.error !== null) throw new Error(answer.error);
    return answer;
  }

  /** Calls `work` until no function in it returns a promise that is not settled. */
  async settled(work) {
    const known = new Map();
    for (;;) {
      const attempt = { known, seen: new Map(), awaited: [] };
      this.#attempt = attempt;
      this.#frames = [];
      const result = work();
      if (attempt.awaited.length === 0) return result;
      await Promise.all(attempt.awaited);
    }
  }

  /** Gives a function a name. */
  named(run) {
    const name = String(++this.#last);
    this.#functions.set(name, run);
    return name;
  }

  forget(names) {
    for (const name of names) this.#functions.delete(name);
  }

  /**
   * Converts a value to JSON with marks. Adds the names of its functions to `names`. What JSON cannot represent is refused:
   * it would be equal to something else.
   */
  marked(value, names) {
    const enclosing = new Set();
    const refuse = (what) => {
      throw new TypeError(`${what} cannot be matched, because JSON has none; convert it first`);
    };
    const convert = (value) => {
      if (value instanceof RegExp) return { [REGEX]: String(value) };
      switch (typeof value) {
        case "function": {
          if (names === undefined) return refuse("a function");
          const name = this.named(value);
          names.push(name);
          return { [FUNCTION]: name };
        }
        case "bigint": return `${BIG}${value}`;
        case "symbol": return refuse("a symbol");
        case "number": return Number.isFinite(value) ? value : refuse(String(value));
      }
      if (value === null || typeof value !== "object") return value;
      if (typeof value.toJSON === "function") return convert(value.toJSON());
      if (value instanceof Error || value instanceof Promise) return refuse(`an object of the class ${value.constructor.name}`);
      if (enclosing.has(value)) throw new TypeError("the value contains itself");
      enclosing.add(value);
      let converted;
      if (Array.isArray(value)) {
        converted = value.map((item) => convert(item) ?? null);
      } else if (Symbol.iterator in value || ArrayBuffer.isView(value)) {
        refuse(`an object of the class ${value.constructor?.name}`);
      } else {
        converted = Object.fromEntries(Object.entries(value).map(([key, value]) => [key, convert(value)]));
      }
      enclosing.delete(value);
      return converted;
    };
    return convert(value);
  }

  /** Restores what `marked` converted. */
  unmarked(value) {
    if (value === null || typeof value !== "object") return value;
    if (Array.isArray(value)) return value.map((item) => this.unmarked(item));
    if (REGEX in value) {
      const end = value[REGEX].lastIndexOf("/");
      return new RegExp(value[REGEX].slice(1, end), value[REGEX].slice(end + 1));
    }
    if (FUNCTION in value) return this.#functions.get(value[FUNCTION]);
    return Object.fromEntries(Object.entries(value).map(([key, value]) => [key, this.unmarked(value)]));
  }

  /** Answers a question of the engine. */
  answer(at, length) {
    let answer;
    try {
      answer = this.#answer(this.#read(at, length)) ?? {};
    } catch (error) {
      answer = { error: message(error) };
    }
    this.#write(JSON.stringify(answer));
  }

  #answer(question) {
    const [kind] = Object.keys(question);
    const asked = question[kind];
    switch (kind) {
      case "regex":
        this.#regex(...asked);
        return true;
      case "test": {
        const [source, flags, text] = asked;
        const regex = this.#regex(source, flags);
        regex.lastIndex = 0;
        return regex.test(text);
      }
      case "parse":
        this.#expression(...asked);
        return true;
      case "evaluate": {
        const [text, names, values] = asked;
        const run = this.#expression(text, names);
        return this.#known(`expression ${text} ${JSON.stringify(values)}`, () => run(...values.map((value) => value.value)));
      }
      case "function": {
        const run = this.#functions.get(asked[0]);
        if (typeof run !== "function") throw new Error(`${asked[1] || "this"} is not a function`);
        return { length: run.length, virtual: run.virtual, strategy: run.strategy, expects: run.expects };
      }
      case "call":
        this.#frames.push(this.#frame(...asked));
        return this.#run();
      default: {
        const frame = this.#frames.at(-1);
        frame.state.answers.push(question);
        frame.state.question = undefined;
        return this.#run();
      }
    }
  }

  #frame(name, values) {
    const state = this.#state(`call ${name} ${JSON.stringify(values)}`, () => ({ answers: [] }));
    return { run: this.#functions.get(name), values, state };
  }

  /** Calls the function of the innermost frame, unless its result or its next question is known. */
  #run() {
    const { run, values, state } = this.#frames.at(-1);
    if (!state.settled && state.question === undefined && state.awaited === undefined) {
      let next = 0;
      const validate = (...given) => {
        const known = state.answers[next++];
        if (known === undefined) {
          state.question = given.map((value) => (value === undefined ? {} : { value: plain(value) }));
          throw ASKED;
        }
        if ("refusal" in known) throw new Error(known.refusal);
        return known.answer;
      };
      settle(state, () => run(...values.map((value) => this.#argument(value, validate))));
    }
    if (state.question !== undefined) return { validate: state.question };
    this.#frames.pop();
    return this.#result(state);
  }

  /** Returns the result of `work`, which is called once in all attempts. */
  #known(key, work) {
    const state = this.#state(key, () => ({}));
    if (!state.settled && state.awaited === undefined) settle(state, work);
    return this.#result(state);
  }

  #result(state) {
    if (state.settled) return state.settled;
    this.#attempt.awaited.push(state.awaited);
    return { stopped: "it waits for a promise" };
  }

  /** Returns what is known of the next use of `key` in this attempt. */
  #state(key, make) {
    const use = this.#attempt.seen.get(key) ?? 0;
    this.#attempt.seen.set(key, use + 1);
    const name = `${use} ${key}`;
    if (!this.#attempt.known.has(name)) this.#attempt.known.set(name, make());
    return this.#attempt.known.get(name);
  }

  #argument(value, validate) {
    if ("fixture" in value) return { ...value.fixture, $validate: validate };
    if ("context" in value) return this.#context(value.context);
    return "validate" in value ? validate : value.value;
  }

  #context(values) {
    const of = (name) => (...given) =>
      this.request({ do: "context", function: name, values, arguments: given.map((value) => plain(value) ?? null) }).value;
    return {
      ...values,
      createSubContext: (...given) => this.#context(of("sub")(...given)),
      createChildContext: (...given) => this.#context(of("child")(...given)),
      distribute: of("distribute"),
      aggregate: of("aggregate"),
    };
  }

  #regex(source, flags) {
    return kept(this.#regexes, `${flags}/${source}`, () => new RegExp(source, flags));
  }

  /** Compiles an expression, the body of a function, or a function without parameters. */
  #expression(text, names) {
    return kept(this.#expressions, `${names}(${text}`, () => {
      const Kind = /\bawait\b/.test(text) ? AsyncFunction : Function;
      const compile = (body) => new Kind(...names, `"use strict"; ${body}`);
      let run;
      try {
        run = compile(`return (${text}\n);`);
      } catch (error) {
        if (!(error instanceof SyntaxError)) throw new Error(`expressions need a runtime that allows \`new Function\`: ${error.message}`);
        if (!/\b(return|throw)\b/.test(text)) throw new Error(`this is not a JavaScript expression: ${error.message}`);
        run = compile(text);
      }
      return (...values) => {
        const value = run(...values);
        return typeof value === "function" ? value() : value;
      };
    });
  }

  #write(text) {
    const bytes = encoder.encode(text);
    const at = this.exports.input(bytes.length);
    new Uint8Array(this.exports.memory.buffer, at, bytes.length).set(bytes);
  }

  #read(at, length) {
    return JSON.parse(decoder.decode(new Uint8Array(this.exports.memory.buffer, at, length)));
  }
}

/** Calls `work`, and keeps its result in `state`. A promise is awaited there. */
function settle(state, work) {
  const done = (value) => {
    state.settled = value === undefined ? {} : { value: plain(value) };
  };
  const failed = (error) => {
    // A function that caught `ASKED` is called again, too.
    if (error !== ASKED) state.settled = { error: message(error) };
  };
  try {
    const value = work();
    if (typeof value?.then !== "function") return state.question === undefined && done(value);
    const settled = () => {
      state.awaited = undefined;
    };
    state.awaited = Promise.resolve(value)
      .then((value) => state.question === undefined && done(value), failed)
      .then(settled);
  } catch (error) {
    failed(error);
  }
}

function kept(all, key, make) {
  const known = all.get(key);
  if (known !== undefined) return known;
  const made = make();
  if (all.size >= 1000) all.clear();
  all.set(key, made);
  return made;
}

/** Returns a value as JSON can represent it. */
function plain(value) {
  if (value === undefined) return undefined;
  const seen = (key, value) => {
    if (value instanceof RegExp) return String(value);
    return typeof value === "bigint" ? Number(value) : value;
  };
  const text = JSON.stringify(value, seen);
  return text === undefined ? undefined : JSON.parse(text);
}

function message(error) {
  return error instanceof Error ? error.message : String(error);
}
