// The functions for writing tests. A runtime runs one scenario, so the state of the scenario is stored here.
const { Array, Error, Map, Object, Promise, Proxy, RangeError, ReferenceError, Set, String, Symbol, TypeError, WeakMap } = globalThis;
const { freeze } = Object;
const now = performance.now.bind(performance);
const parse = JSON.parse;

// Scenarios by the values that `scenario` returned, in the order of their creation.
const made = new Map();
// Maps a reply to the number of its message.
const numbers = new WeakMap();
// Promises of replies, to detect a missing `await`.
const sends = new WeakMap();
let current;

const isText = (value) => typeof value === 'string';
const isObject = (value) => typeof value === 'object' && value !== null;
const isMissing = (error) => isText(error?.message) && / is not available here|^cannot (find|import) /.test(error.message);
// Node.js has errors about servers and the machine.
const isEnvironment = globalThis[Symbol.for('trialrun.isEnvironment')] ?? (() => false);
// The embedded engine has limits.
const isLimit = globalThis[Symbol.for('trialrun.isLimit')] ?? (() => false);
const isPromise = (value) => isObject(value) && typeof value.then === 'function';
const kind = (value) => {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  if (value === undefined) return 'undefined';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
};
const deepFrozen = (value) => {
  if (!isObject(value)) return value;
  for (const inside of Object.values(value)) deepFrozen(inside);
  return freeze(value);
};

const noFunction = (fn, options) =>
  typeof options === 'function'
    ? 'the options of a scenario come before its function'
    : `the scenario needs a function, not ${kind(fn)}`;

/** Defines a test: `scenario(name, fn)`, `scenario(name, options, fn)`. */
export function scenario(name, ...rest) {
  const [options, fn] = rest.length > 1 ? rest : [{}, rest[0]];
  if (!isText(name) || name.trim() === '') throw new TypeError(`a scenario needs a name, not ${kind(name)}`);
  if (typeof fn !== 'function') throw new TypeError(noFunction(fn, options));
  if (!isObject(options) || Array.isArray(options)) {
    throw new TypeError(`the options of a scenario must be an object, not ${kind(options)}`);
  }
  const given = freeze({ ...options, name, fn });
  made.set(given, { name, options, fn, stack: new Error().stack });
  return given;
}

// Returns `scenario` with a preset option.
const preset = (option) => (name, ...rest) => {
  const [options, fn] = rest.length > 1 ? rest : [{}, rest[0]];
  return scenario(name, isObject(options) ? { ...options, [option]: true } : options, fn);
};
scenario.skip = preset('skip');
scenario.only = preset('only');

const short = (value) => (isText(value) ? value : JSON.stringify(value) ?? String(value));

// Replaces `%s`, `%j`, `%#` and `$key` in a name with values of a row; if there are none, appends the row's number.
function nameOfRow(name, row, number) {
  const values = Array.isArray(row) ? [...row] : [row];
  let used = false;
  const filled = name.replace(/%([sdifjop#%])|\$([\p{L}_$][\p{L}\p{N}_$]*)/gu, (found, letter, key) => {
    if (letter === '%') return '%';
    if (key !== undefined && !(isObject(row) && key in row)) return found;
    used = true;
    if (letter === '#') return String(number);
    return short(key === undefined ? values.shift() : row[key]);
  });
  return used ? filled : `${filled} (${number + 1})`;
}

/** Defines a scenario for each row: `scenario.each(rows)(name, (context, ...row) => { … })`. */
scenario.each = (rows, ...others) => {
  if (others.length > 0) {
    throw new TypeError('scenario.each takes the rows alone; write `scenario.each(rows)("name", async ({ agent }, row) => …)`');
  }
  if (!isObject(rows) || typeof rows[Symbol.iterator] !== 'function') {
    throw new TypeError(`scenario.each takes a list, not ${kind(rows)}`);
  }
  const listed = [...rows];
  if (listed.length === 0) throw new TypeError('scenario.each has no rows, so nothing would run');
  return (name, ...rest) => {
    const [options, fn] = rest.length > 1 ? rest : [{}, rest[0]];
    if (!isText(name)) throw new TypeError(`a scenario needs a name, not ${kind(name)}`);
    if (typeof fn !== 'function') throw new TypeError(noFunction(fn, options));
    return listed.map((row, number) => {
      const values = Array.isArray(row) ? row : [row];
      return scenario(nameOfRow(name, row, number), options, (context) => fn(context, ...values));
    });
  };
};
freeze(scenario);

const PERSONA = ['role', 'name', 'tone', 'backstory', 'context'];

/** Describes a user who talks to the agent. */
export function persona(given) {
  if (!isObject(given) || Array.isArray(given)) throw new TypeError(`a persona must be an object, not ${kind(given)}`);
  const fields = {};
  for (const [key, value] of Object.entries(given)) {
    if (!PERSONA.includes(key)) throw new TypeError(`a persona has no \`${key}\`; it has ${PERSONA.join(', ')}`);
    if (key !== 'context' && value !== undefined && !isText(value)) {
      throw new TypeError(`\`${key}\` of a persona must be text, not ${kind(value)}`);
    }
    if (value !== undefined) fields[key] = value;
  }
  if (!isText(fields.role)) throw new TypeError('a persona needs a `role`');
  freeze(fields);
  return freeze({
    ...fields,
    says(text) {
      if (!isText(text)) throw new TypeError(`says takes text, not ${kind(text)}`);
      return freeze({ text, persona: fields });
    },
    converse(agent, options) {
      return awaitable('converse', talk(fields, agent, options));
    },
  });
}

const CONVERSE = ['goal', 'stopWhen', 'maxTurns', 'model'];

async function talk(fields, agent, options) {
  const run = running('converse');
  const at = new Error();
  if (!conversations.has(agent)) {
    throw new TypeError('the first argument of `converse` must be the `agent` of the scenario');
  }
  if (!isText(options?.goal)) throw new TypeError('converse needs a `goal`: a string that describes what the user wants');
  for (const key of Object.keys(options)) {
    if (!CONVERSE.includes(key)) throw new TypeError(`converse has no option \`${key}\`; it has ${CONVERSE.join(', ')}`);
  }
  const { goal, stopWhen, maxTurns = 10, model } = options;
  if (!Number.isInteger(maxTurns) || maxTurns < 1) throw new RangeError('`maxTurns` must be a whole number of at least 1');
  const conversation = conversations.get(agent);
  const request = { persona: fields, goal, stopWhen, maxTurns, model, conversation, stack: at.stack };
  const { replies, reason } = await asked(run, at, 'converse', request);
  return freeze({ replies: freeze(replies.map((reply) => heard(reply, run))), last: run.last, reason });
}

/** The agent's answer to one message. */
export class AgentResponse {
  constructor({ text = '', toolCalls = [], latencyMs = 0, firstTokenMs, tokenUsage, raw } = {}, calls) {
    this.text = String(text);
    if (calls === undefined) this.toolCalls = deepFrozen(toolCalls);
    else Object.defineProperty(this, 'toolCalls', calls);
    this.latencyMs = latencyMs;
    if (firstTokenMs !== undefined) this.firstTokenMs = firstTokenMs;
    if (tokenUsage !== undefined) this.tokenUsage = freeze(tokenUsage);
    if (raw !== undefined) this.raw = deepFrozen(raw);
    freeze(this);
  }

  mentions(text) {
    return this.text.toLowerCase().includes(String(text).toLowerCase());
  }
}
freeze(AgentResponse.prototype);

const CALLS_UNREPORTED = 'the test reads `toolCalls`, but the agent does not report which tools it called';
const ARGUMENTS_UNREAD = 'the test reads `arguments` of a call whose arguments are not known';

// Returns a property whose value is not completely known. When a test reads it, this is an undecided claim, because what
// the test concludes from the value is not known.
const incomplete = (run, reply, name, value, because) => {
  let isRead = false;
  const get = () => {
    if (!isRead) {
      isRead = true;
      claim(run, { type: name, reply: reply.number, read: new Error().stack })({ status: 'undecided', because });
    }
    return value;
  };
  return { enumerable: true, get };
};

// Returns the property `toolCalls` of a reply from the program.
const callsOf = (reply, run) => {
  const calls = reply.toolCalls.map(({ isUnread, ...call }) => {
    if (!isUnread) return deepFrozen(call);
    const unread = incomplete(run, reply, 'arguments', call.arguments, ARGUMENTS_UNREAD);
    return freeze(Object.defineProperty(call, 'arguments', unread));
  });
  freeze(calls);
  if (reply.callsUnreported) return incomplete(run, reply, 'toolCalls', calls, CALLS_UNREPORTED);
  return { enumerable: true, value: calls };
};

// Members of a reply that not every reply has, and its method.
const OF_REPLY = ['firstTokenMs', 'tokenUsage', 'raw', 'mentions'];

// Wraps a reply from the program.
const heard = (reply, run) => {
  const response = closed('reply', new AgentResponse(reply, callsOf(reply, run)), OF_REPLY);
  numbers.set(response, reply.number);
  run.last = response;
  return response;
};

const running = (what) => {
  if (current === undefined) throw new Error(`\`${what}\` works only while a scenario runs`);
  return current;
};

// Registers a promise that must be settled before the scenario ends.
const pending = (run, promise) => {
  const done = () => run.pending.delete(promise);
  run.pending.add(promise);
  promise.then(done, done);
  return promise;
};

// Sends a request to the program. If it is rejected, the error points at the call.
async function asked(run, at, name, request) {
  let answer;
  try {
    answer = await pending(run, run.ask(name, request));
  } catch (error) {
    at.message = error.message;
    throw at;
  }
  if (isText(answer?.refused)) {
    at.message = answer.refused;
    throw at;
  }
  return answer;
}

function message(given) {
  if (isText(given)) return { text: given };
  const text = given?.text ?? given?.message ?? given?.content;
  if (isObject(given) && isText(text)) return { text, persona: given.persona };
  throw new TypeError(`agent.send takes a string or the result of \`persona.says\`, not ${kind(given)}`);
}

const sending = (run, call, conversation) => {
  let waiting = 0;
  return (given, options) => {
    const at = new Error();
    if (waiting > 0) run.told.push(run.ask('overlap', {}));
    waiting += 1;
    const sent = (async () => {
      try {
        return heard(await asked(run, at, 'send', { ...message(given), options, conversation }), run);
      } finally {
        waiting -= 1;
      }
    })();
    sends.set(sent, true);
    return awaitable(call, sent);
  };
};

// Returns an object that throws for unknown members, so that a misspelt name is an error at its location. It may lack
// those in `others`.
const closed = (what, members, others = []) =>
  new Proxy(freeze(members), {
    get(target, name) {
      const isKnown = !isText(name) || name in target || others.includes(name) || name === 'then' || name === 'toJSON';
      if (isKnown) return target[name];
      const names = [...new Set([...Object.keys(target), ...others])].join(', ');
      throw new ReferenceError(`\`${what}\` has no \`${name}\`; it has ${names}`);
    },
  });

// Returns `promise`, the result of `call`. Without `await`, a test would take `undefined` for a property of the result, so
// reading one is an error at the location of the call.
const awaitable = (call, promise) => {
  const at = new ReferenceError();
  const get = (target, name) => {
    const isConverted = name === Symbol.iterator || name === Symbol.toPrimitive;
    if (!isConverted && (!isText(name) || name in target || name === 'toJSON')) return target[name];
    const use = isText(name) ? `\`${name}\` is read` : name === Symbol.iterator ? 'a list is expected' : 'a value is expected';
    at.message = `${use} from the promise of \`${call}\`, which needs \`await\``;
    throw at;
  };
  return Object.setPrototypeOf(promise, new Proxy(Object.create(Promise.prototype), { get }));
};

// Names of the agents of scenarios, except for the first one of each.
const conversations = new WeakMap();

const handle = (run, { name, model }, conversation) => {
  const self = conversation === undefined ? 'agent' : `agents.${conversation}`;
  const ask = (call, what, request) => awaitable(`${self}.${call}`, asked(run, new Error(), what, request));
  const agent = closed('agent', {
    name: conversation ?? name,
    model,
    send: sending(run, `${self}.send`, conversation),
    run: (command, options) => ask('run', 'run', { command, timeout: options?.timeout }),
    files: closed('agent.files', {
      read: (path) => ask('files.read', 'read', { path }),
      list: (path) => ask('files.list', 'list', { path }),
      exists: (path) => ask('files.exists', 'exists', { path }),
    }),
  });
  conversations.set(agent, conversation);
  return agent;
};

// `agents.NAME` is a separate conversation with the agent that the project configures under this name, or otherwise with
// the scenario's agent.
const others = (run, about) => {
  const open = new Map();
  return new Proxy(freeze({}), {
    get(_, name) {
      if (!isText(name) || name === 'then' || name === 'toJSON') return undefined;
      if (!open.has(name)) open.set(name, name === about.name ? run.agent : handle(run, about, name));
      return open.get(name);
    },
  });
};

// Reports a claim when it is made, so that it counts regardless of later events, and again when it is decided.
const claim = (run, request) => {
  const seq = run.next++;
  run.told.push(run.ask('claim', { ...request, seq }));
  return (found) => pending(run, run.ask('observed', { ...found, seq }).then(freeze));
};

const says = (error) => (error instanceof Error ? `${error.name}: ${error.message}` : `threw ${String(error)}`);

// Reports an assertion that was used incorrectly, so that it cannot be decided.
const misused = (run, type, stack, error) => claim(run, { type, stack })({ status: 'undecided', error });

function declare(run, name, given, stack) {
  const number = numbers.get(given[0]);
  if (number === undefined && isPromise(given[0])) {
    const forgotten = sends.has(given[0]) ? 'write `await agent.send(…)` to get the reply' : 'it received a promise';
    return misused(run, name, stack, `\`assert.${name}\` needs a reply: ${forgotten}`);
  }
  const rest = number === undefined ? given : given.slice(1);
  while (rest.length > 0 && rest[rest.length - 1] === undefined) rest.pop();
  const request = { seq: run.next, name, reply: number, arguments: rest, stack };
  try {
    const answer = run.ask('assert', request);
    run.next++;
    return pending(run, answer.then(freeze));
  } catch (error) {
    return misused(run, name, stack, says(error));
  }
}

// Keeps the first error of a scenario. Does not create objects, because there may be no memory left.
function caught(run, error) {
  if (run.hasThrown) return;
  run.hasThrown = true;
  run.error = error;
}

// Decides a claim with the test's own code.
function observe(run, request, work) {
  const settle = claim(run, request);
  const began = now();
  return pending(
    run,
    (async () => {
      let found;
      try {
        found = await work();
      } catch (error) {
        // A name or a module that does not exist is a mistake in the scenario, regardless of the other results. A server
        // that cannot be reached and a limit of the engine are none of the agent either.
        const isOwn = error instanceof ReferenceError || isMissing(error) || isEnvironment(error) || isLimit(error);
        if (isOwn) caught(run, error);
        found = { status: 'unmet', because: `it threw ${says(error)}`, error: says(error), thrown: error?.stack };
      }
      return settle({ ...found, latencyMs: now() - began });
    })(),
  );
}

function custom(run, given, stack) {
  const parts = numbers.has(given[0]) ? [given[1], given[2], given[0]] : given;
  const [title, fn, reply = run.last] = parts;
  if (!isText(title) || typeof fn !== 'function') {
    return misused(run, 'custom', stack, '`assert.custom` takes a name, a function and, optionally, a reply');
  }
  return observe(run, { type: 'custom', title, reply: numbers.get(reply), stack }, async () => {
    const value = await fn(reply);
    if (value === true) return { status: 'met', because: `\`${title}\` holds` };
    const actual = value === false ? 'false' : isText(value) ? `"${value}"` : String(value);
    return { status: 'unmet', because: `\`${title}\` does not hold`, expected: 'true', actual };
  });
}

const path = (steps) =>
  (steps ?? []).map((step) => (isObject(step) ? step.key : step)).map((key) => (isText(key) ? `.${key}` : `[${String(key)}]`)).join('');

// Validates the value with the test's schema object, such as a zod schema; returns the issues.
async function objections(schema, value) {
  if (typeof schema.safeParse === 'function') {
    const result = await schema.safeParse(value);
    if (result?.success === true) return [];
    return result?.error?.issues ?? result?.error?.errors ?? [{ message: says(result?.error) }];
  }
  const result = await schema['~standard'].validate(value);
  return result.issues ?? [];
}

// Models often put JSON into a code fence.
const FENCED = /^\s*```[a-z]*\s*\n([^]*?)\n?```\s*$/i;

const isSchema = (value) =>
  (isObject(value) || typeof value === 'function') &&
  (typeof value.safeParse === 'function' || typeof value['~standard']?.validate === 'function');

function jsonSchema(run, given, stack) {
  const [reply, schema] = given;
  if (!isSchema(schema)) return declare(run, 'jsonSchema', given, stack);
  const number = numbers.get(reply);
  if (number === undefined) return declare(run, 'jsonSchema', [reply], stack);
  return observe(run, { type: 'jsonSchema', reply: number, stack }, async () => {
    const expected = 'JSON that satisfies the schema';
    let value;
    try {
      value = parse(FENCED.exec(reply.text)?.[1] ?? reply.text);
    } catch (error) {
      return { status: 'unmet', because: `the reply is not valid JSON: ${error.message}`, expected, actual: reply.text };
    }
    const issues = await objections(schema, value);
    if (issues.length === 0) return { status: 'met', because: 'the reply satisfies the schema' };
    const told = issues.map(({ path: steps, message }) => `${path(steps).replace(/^\./, '') || 'the whole'}: ${message}`);
    const more = told.length > 1 ? ` (and ${told.length - 1} more)` : '';
    return { status: 'unmet', because: `${told[0]}${more}`, expected, actual: reply.text, evidence: told.slice(1) };
  });
}

const OWN = { custom, jsonSchema, json_schema: jsonSchema };
const assertions = new Map();

const assertion = (name) => {
  let known = assertions.get(name);
  if (known === undefined) {
    known = (...given) => {
      const run = running(`assert.${name}`);
      const stack = new Error().stack;
      const found = Object.hasOwn(OWN, name) ? OWN[name](run, given, stack) : declare(run, name, given, stack);
      return awaitable(`assert.${name}`, found);
    };
    assertions.set(name, known);
  }
  return known;
};

/** Records whether something holds, and never throws. The program defines its members. */
export const assert = new Proxy(freeze({}), {
  get: (_, name) => (isText(name) && name !== 'then' && name !== 'toJSON' ? assertion(name) : undefined),
  set(_, name) {
    throw new TypeError(`\`assert.${String(name)}\` cannot be set; use \`assert.custom(name, fn)\``);
  },
});

/** Records a named number. */
export function score(name, value) {
  const run = running('score');
  if (!isText(name) || name === '') throw new TypeError(`score takes a name and a number, not ${kind(name)}`);
  if (typeof value !== 'number' || !Number.isFinite(value)) {
    throw new TypeError(`the score \`${name}\` must be a number, not ${typeof value === 'number' ? value : kind(value)}`);
  }
  run.scores.set(name, value);
  run.told.push(run.ask('score', { name, value }));
}

/** Hides a text in everything that is recorded and reported, such as a token that the test has fetched. Returns it. */
export function secret(text) {
  const run = running('secret');
  if (!isText(text) || text.trim().length < 8) {
    throw new TypeError(`secret takes a text with at least 8 characters${isText(text) ? '' : `, not ${kind(text)}`}`);
  }
  run.told.push(run.ask('secret', { text }));
  return text;
}

/** Waits for a number of milliseconds. */
export const sleep = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

/** Returns the configuration unchanged, so that editors can check its keys. */
export const defineConfig = (config) => config;

// Returns the scenarios that a module exports, in the order in which they are written.
function find(exports) {
  const found = new Set();
  const add = (value) => {
    if (made.has(value)) found.add(value);
    else if (Array.isArray(value)) value.forEach(add);
  };
  for (const value of Object.values(exports)) add(value);
  return [...made.keys()].filter((one) => found.has(one));
}

const told = ({ name, options, stack }) => ({ name, options, stack });

// Returns the interface of a test module to the program: exported scenarios, created but not exported scenarios,
// and a function that runs one of them.
export function open(exports) {
  const found = find(exports);
  return {
    scenarios: found.map((one) => told(made.get(one))),
    others: [...made].filter(([one]) => !found.includes(one)).map(([, one]) => told(one)),
    run: (index, ask, about) => run(made.get(found[index]).fn, ask, about),
    rethrow,
  };
}

// Throws the error that the scenario threw, if any. Work that it started before may never end.
function rethrow() {
  if (current?.hasThrown) throw current.error;
}

// Runs a scenario, and ends when everything that it started has ended.
async function run(fn, ask, about) {
  const run = { ask, pending: new Set(), told: [], scores: new Map(), next: 0, last: undefined, hasThrown: false, error: undefined };
  run.agent = handle(run, about);
  current = run;
  const { agent, scores } = run;
  const agents = others(run, about);
  try {
    await fn({ agent, agents, assert, persona, score, scores, profile: about.profile ?? null });
  } catch (thrown) {
    caught(run, thrown);
  }
  while (run.pending.size > 0) await Promise.allSettled([...run.pending]);
  await Promise.allSettled(run.told);
  rethrow();
  return Object.fromEntries([...scores].filter(([, value]) => Number.isFinite(value)));
}
