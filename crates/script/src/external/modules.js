// Runs a user's modules in Node.js, Bun or Deno. The program starts this text in a process of its own and exchanges lines of
// JSON with it: it asks for modules and functions to be run, and answers requests. The program resolves and compiles the
// user's own files, and the runtime loads everything else.
// The parameters of this text, which is the body of a function, are in `start.js`.
const { Module, createRequire, isBuiltin, syncBuiltinESMExports } = node.module;
const { dirname } = node.path;
const { StringDecoder } = node.decoder;
const { fileURLToPath, pathToFileURL } = node.url;
const { fs, net, threads, vm } = node;
const { bun, deno } = process.versions;
const isNode = bun === undefined && deno === undefined;

// Maximum length of a message, and of all that is printed, in characters.
const LONGEST = 48 << 20;
const MOST_PRINTED = 2 << 20;
// Maximum nesting depth of a value.
const DEEPEST = 128;

const { JSON, Map, Object, Promise, Error, clearInterval, setImmediate, setInterval } = globalThis;
const { stringify, parse } = JSON;
const exit = process.exit.bind(process);
const settled = Promise.resolve();

function send(message) {
  const text = stringify(message);
  if (text.length > LONGEST) throw new RangeError('the value is too large');
  let rest = Buffer.from(`${text}\n`);
  while (rest.length > 0) {
    try {
      rest = rest.subarray(fs.writeSync(output, rest));
    } catch (error) {
      if (error.code === 'EAGAIN') continue;
      // The program has ended, or does not listen any more.
      exit(1);
    }
  }
}

// If this version is too old, the program does not wait for what follows.
send({ hello: bun ?? deno ?? process.versions.node });

// Values. Everything that JSON does not have is an object with the single key `$`.

const functions = [];
const indexes = new WeakMap();

const isPlain = (value) => {
  const prototype = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
};

// Returns what stands for a value of a class.
function replaced(value) {
  if (typeof value.toJSON === 'function') {
    const json = value.toJSON();
    return json === value ? { ...value, toJSON: undefined } : json;
  }
  if (value instanceof Map) return Object.fromEntries([...value].map(([key, entry]) => [typeof key === 'symbol' ? key.description : key, entry]));
  if (value instanceof Set) return [...value];
  if (value instanceof Error) return { name: value.name, message: value.message, ...value };
  if (value instanceof ArrayBuffer) return [...new Uint8Array(value)];
  if (ArrayBuffer.isView(value)) return [...(value instanceof DataView ? new Uint8Array(value.buffer) : value)];
  if (value instanceof String || value instanceof Number || value instanceof Boolean) return value.valueOf();
  return undefined;
}

function encode(value, above = []) {
  switch (typeof value) {
    case 'string':
      return value.isWellFormed?.() === false ? value.toWellFormed() : value;
    case 'boolean':
      return value;
    case 'number':
      return Number.isFinite(value) && !Object.is(value, -0) ? value : { $: ['number', String(Object.is(value, -0) ? '-0' : value)] };
    case 'bigint':
      return BigInt(Number(value)) === value ? encode(Number(value)) : String(value);
    case 'function': {
      if (!indexes.has(value)) indexes.set(value, functions.push(value) - 1);
      const length = Number.isFinite(value.length) ? value.length : 0;
      return { $: ['function', indexes.get(value), typeof value.name === 'string' ? value.name : '', length] };
    }
    case 'object':
      break;
    default:
      return { $: ['undefined'] };
  }
  if (value === null) return null;
  if (above.includes(value)) throw new TypeError('the value contains itself');
  if (above.length >= DEEPEST) throw new RangeError('the value is nested too deeply');
  const inside = [...above, value];
  if (Array.isArray(value)) return Array.from(value, (item) => encode(item, inside));
  if (value instanceof RegExp) return { $: ['regex', value.source, value.flags] };
  if (!isPlain(value) || typeof value.toJSON === 'function') {
    const other = replaced(value);
    if (other !== undefined) return encode(other, inside);
  }
  const entries = Object.entries(value).map(([key, entry]) => [key, encode(entry, inside)]);
  // A key that is a number would change its place.
  const isSimple = entries.every(([key]) => key !== '$' && key !== '__proto__');
  return isSimple ? Object.fromEntries(entries) : { $: ['map', entries] };
}

function decode(value) {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(decode);
  const special = Object.hasOwn(value, '$') ? value.$ : undefined;
  if (special === undefined) {
    const map = {};
    for (const [key, entry] of Object.entries(value)) map[key] = decode(entry);
    return map;
  }
  const [kind, ...parts] = special;
  switch (kind) {
    case 'number':
      return Number(parts[0]);
    case 'regex':
      return new RegExp(parts[0], parts[1]);
    case 'function':
      return functions[parts[0]];
    case 'host': {
      const [name, bound] = parts;
      const given = bound.map(decode);
      return (...rest) => request(name, [...given, ...rest]);
    }
    case 'map': {
      const map = {};
      for (const [key, entry] of parts[0]) {
        Object.defineProperty(map, key, { value: decode(entry), writable: true, enumerable: true, configurable: true });
      }
      return map;
    }
    default:
      return undefined;
  }
}

const textOf = (value) => {
  if (typeof value === 'string') return value;
  try {
    return stringify(value) ?? String(value);
  } catch {
    return 'a value that is not an error';
  }
};

// Codes of errors that say that a server cannot be reached, or that the machine has run out of something.
const ENVIRONMENT = new RegExp(
  '^(E(CONN(REFUSED|RESET|ABORTED)|NOTFOUND|AI_\\w+|HOST(UNREACH|DOWN)|NET(UNREACH|DOWN|RESET)|TIMEDOUT|ADDR(INUSE|NOTAVAIL)|MFILE|NFILE|' +
    'NOSPC|DQUOT|NOMEM)|UND_ERR_(SOCKET|(CONNECT|HEADERS|BODY)_TIMEOUT)|ERR_NETWORK|CERT_\\w+|(DEPTH_ZERO_)?SELF_SIGNED_CERT\\w*|UNABLE_TO_\\w+)$',
);

// Returns true for an error of the environment, which packages wrap in errors of their own.
function isEnvironment(error, depth = 0) {
  if (typeof error !== 'object' || error === null || depth > 5) return false;
  if (typeof error.code === 'string' && ENVIRONMENT.test(error.code)) return true;
  // `fetch` of Deno has no codes.
  if (deno !== undefined && /^error sending request for url/.test(error.message)) return true;
  const inside = Array.isArray(error.errors) ? [error.cause, ...error.errors] : [error.cause];
  return inside.some((one) => isEnvironment(one, depth + 1));
}

// The prelude asks this.
Object.defineProperty(globalThis, Symbol.for('trialrun.isEnvironment'), { value: isEnvironment });

function described(error) {
  const isError = typeof error === 'object' && error !== null && typeof error.message === 'string';
  if (!isError) return { name: 'Error', message: textOf(error) };
  const wrapped = error.cause?.message || error.cause?.code || (error.message === '' && error.code);
  const cause = typeof wrapped === 'string' ? ` (${wrapped})` : '';
  const environment = isEnvironment(error);
  return { name: String(error.name ?? 'Error'), message: error.message + cause, plain: error.message, stack: String(error.stack ?? ''), environment };
}

// Messages to the program that it answers, by their numbers.
const waiting = new Map();
let next = 1;

function ask(message) {
  const id = next++;
  send({ ...message, id });
  return new Promise((fulfil, reject) => {
    waiting.set(id, { fulfil, reject });
    hold();
  });
}

let willPause = false;

// Sends a request of the user's code.
function request(name, given) {
  const answer = ask({ request: name, arguments: given.map((value) => encode(value)), stack: new Error().stack });
  if (!willPause) {
    willPause = true;
    // Tells the program when the code cannot go on, so that it sees the requests of that time together.
    setImmediate(() => {
      willPause = false;
      send({ pause: true });
    });
  }
  return answer.then(decode);
}

// Modules. The user's own files are compiled by the program, and linked here.

const modules = new Map();
let builtins = {};
let linking = settled;

const identifierOf = (builtin) => `internal:${builtin}`;

// Returns a module with the values of a namespace that is complete.
function wrapped(identifier, names, get) {
  return new vm.SyntheticModule(
    names,
    function () {
      for (const name of names) this.setExport(name, get(name));
    },
    { identifier },
  );
}

const ofExports = (identifier, exports) => {
  const isHolder = (typeof exports === 'object' && exports !== null) || typeof exports === 'function';
  const names = isHolder ? Object.keys(exports).filter((name) => name !== 'default') : [];
  return wrapped(identifier, [...names, 'default'], (name) => (name === 'default' ? exports : exports[name]));
};

function compiled(code, identifier) {
  // Bun takes the name of the file in stacks from this comment.
  return new vm.SourceTextModule(bun === undefined ? code : `${code}\n//# sourceURL=${identifier}`, {
    identifier,
    importModuleDynamically: async (specifier, from) => evaluated(await imported(specifier, from.identifier ?? identifier)),
    initializeImportMeta(meta) {
      const url = pathToFileURL(identifier).href;
      Object.assign(meta, { url, filename: identifier, dirname: dirname(identifier) });
      const inDeno = (specifier) => pathToFileURL(createRequire(identifier).resolve(specifier)).href;
      meta.resolve = (specifier) => (resolve === undefined ? inDeno(specifier) : resolve(specifier, url));
    },
  });
}

// Runs a CommonJS module whose text the program has compiled.
function required(path, code) {
  const module = new Module(path, null);
  module.filename = path;
  module.paths = Module._nodeModulePaths(dirname(path));
  Module._cache[path] = module;
  module._compile(code, path);
  module.loaded = true;
  return module.exports;
}

async function ownModule(path) {
  const { kind, code } = await ask({ read: path });
  switch (kind) {
    case 'module':
      return compiled(code, path);
    case 'commonjs':
      return ofExports(path, required(path, code));
    case 'json':
      return wrapped(path, ['default'], () => parse(code));
    default:
      return nativeModule(pathToFileURL(path).href, path);
  }
}

// Resolves and imports a module of the runtime or a package, as the file at `from` would.
async function imports(specifier, from) {
  if (isBuiltin(specifier) || specifier.startsWith('file:')) return load(specifier);
  if (resolve === undefined) {
    if (specifier.endsWith('.json')) return { default: createRequire(from)(specifier) };
    const importModuleDynamically = vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER;
    return vm.compileFunction('return import(specifier)', ['specifier'], { filename: from, importModuleDynamically })(specifier);
  }
  const url = resolve(specifier, pathToFileURL(from).href);
  if (!url.startsWith('file:')) return load(url);
  const path = fileURLToPath(url);
  if (!fs.existsSync(path)) throw Object.assign(new Error(`cannot find ${specifier}`), { code: 'ERR_MODULE_NOT_FOUND' });
  return path.endsWith('.json') ? { default: createRequire(from)(path) } : load(url);
}

async function nativeModule(specifier, from, otherwise) {
  let namespace;
  try {
    namespace = await imports(specifier, from);
  } catch (error) {
    // The program explains better what it could not find.
    const isMissing = ['ERR_MODULE_NOT_FOUND', 'MODULE_NOT_FOUND', 'ERR_PACKAGE_PATH_NOT_EXPORTED'].includes(error?.code);
    throw otherwise === undefined || !isMissing ? error : new Error(otherwise);
  }
  return kept(namespace, () => wrapped(specifier, Object.keys(namespace), (name) => namespace[name]));
}

function kept(key, make) {
  if (!modules.has(key)) modules.set(key, make());
  return modules.get(key);
}

async function imported(specifier, from) {
  const builtin = from.startsWith('internal:') ? specifier : undefined;
  const found = builtin === undefined ? await ask({ resolve: specifier, from }) : { builtin };
  if (found.builtin !== undefined) {
    const identifier = identifierOf(found.builtin);
    return kept(identifier, () => compiled(builtins[found.builtin], identifier));
  }
  if (found.own !== undefined) return kept(found.own, () => ownModule(found.own));
  return nativeModule(specifier, from, found.otherwise);
}

async function evaluated(module) {
  // Modules are linked one after another, because a module cannot be linked twice at once.
  linking = linking.catch(() => {}).then(async () => {
    if (module.status === 'unlinked') await module.link((specifier, from) => imported(specifier, from.identifier));
  });
  await linking;
  if (module.status === 'errored') throw module.error;
  if (module.status !== 'evaluating') await module.evaluate();
  return module;
}

const namespaceAt = async (path) => (await evaluated(await kept(path, () => ownModule(path)))).namespace;

// Helpers of compiled decorators.
Object.defineProperty(globalThis, 'babelHelpers', {
  value: Object.freeze({
    decorate(...given) {
      const [decorators, target, key, own] = given;
      const isClass = given.length < 3;
      let result = isClass ? target : own === null ? Object.getOwnPropertyDescriptor(target, key) : own;
      for (const decorator of [...decorators].reverse()) {
        if (decorator === undefined) continue;
        const made = isClass ? decorator(result) : given.length > 3 ? decorator(target, key, result) : decorator(target, key);
        result = made || result;
      }
      if (given.length > 3 && result) Object.defineProperty(target, key, result);
      return result;
    },
    decorateParam: (index, decorator) => (target, key) => decorator(target, key, index),
    decorateMetadata: (key, value) => (typeof Reflect.metadata === 'function' ? Reflect.metadata(key, value) : undefined),
  }),
});

// Calls of the program that have not ended.
const calls = new Set();

async function run(id, work) {
  calls.add(id);
  hold();
  let answer;
  try {
    answer = { done: id, value: encode(await work()) };
  } catch (error) {
    answer = { failed: id, error: described(error) };
  }
  try {
    send(answer);
  } catch (error) {
    send({ failed: id, error: described(error) });
  }
  calls.delete(id);
  hold();
}

function take(message) {
  if (message.told !== undefined) {
    const { fulfil, reject } = waiting.get(message.told) ?? {};
    waiting.delete(message.told);
    hold();
    if (message.error === undefined) fulfil?.(message.value);
    else reject?.(new Error(message.error));
  } else if (message.ping !== undefined) {
    send({ pong: message.ping });
  } else if (message.builtins !== undefined) {
    ({ builtins } = message);
    // Another module is loaded without what the user's code has loaded before.
    modules.clear();
  } else if (message.tests !== undefined) {
    run(message.id, async () => {
      const exports = await namespaceAt(message.tests);
      const core = await evaluated(await imported(message.core, 'internal:'));
      return core.namespace.open(exports);
    });
  } else if (message.globals !== undefined) {
    run(message.id, async () => message.globals.filter((name) => !(name in globalThis)));
  } else if (message.program !== undefined) {
    run(message.id, async () => (await namespaceAt(message.program)).default);
  } else if (message.call !== undefined) {
    run(message.id, () => functions[message.call](...message.arguments.map(decode)));
  }
}

// Reads the pipe in a thread that does not keep the process alive, for runtimes whose sockets cannot read it.
const READER = `
  const { parentPort } = require('node:worker_threads');
  const fs = require('node:fs');
  const input = ${deno === undefined ? 3 : "fs.openSync('/dev/fd/3')"};
  const bytes = Buffer.alloc(1 << 16);
  for (let length = 1; length > 0; ) {
    length = fs.readSync(input, bytes);
    parentPort.postMessage(new Uint8Array(bytes.subarray(0, length)));
  }
`;

function listen(take, end) {
  if (isNode) {
    const input = new net.Socket({ fd: 3, readable: true, writable: false });
    return input.on('data', take).on('end', end).on('error', end);
  }
  const reader = new threads.Worker(READER, { eval: true });
  reader.on('message', (bytes) => (bytes.length > 0 ? take(Buffer.from(bytes)) : end())).on('error', end);
  reader.unref();
  let timer;
  return {
    ref: () => (timer ??= setInterval(() => {}, 1 << 30)),
    unref: () => (timer = clearInterval(timer)),
  };
}

let unread = [];
const decoder = new StringDecoder('utf8');
function read(bytes) {
  const lines = decoder.write(bytes).split('\n');
  unread.push(lines[0]);
  if (lines.length === 1) return;
  const whole = [unread.join(''), ...lines.slice(1, -1)];
  unread = [lines.at(-1)];
  for (const line of whole) take(parse(line));
}

// The pipe keeps the process alive while the program owes an answer, or a call.
const input = listen(read, () => exit(0));

function hold() {
  if (waiting.size > 0 || calls.size === 0) input.ref();
  else input.unref();
}

// What the user's code prints.
let printed = 0;

function printing(stream, level) {
  let begun = '';
  const decoder = new StringDecoder('utf8');
  const write = (chunk, encoding, done) => {
    const callback = typeof encoding === 'function' ? encoding : done;
    if (printed <= MOST_PRINTED) {
      const text = typeof chunk === 'string' ? chunk : decoder.write(Buffer.from(chunk));
      printed += text.length;
      begun += text.slice(0, MOST_PRINTED);
      const lines = begun.split('\n');
      begun = lines.pop();
      for (const line of lines) send({ line, level });
      if (printed > MOST_PRINTED) send({ line: '(more output was omitted)', level });
    }
    if (typeof callback === 'function') process.nextTick(callback);
    return true;
  };
  stream.write = write;
  return () => {
    if (begun !== '') send({ line: begun, level });
    begun = '';
  };
}

if (!isNode) {
  // Their consoles do not write to these streams.
  const console = new node.console.Console(process.stdout, process.stderr);
  for (const name of Object.keys(console)) if (name in globalThis.console) globalThis.console[name] = console[name];
}
const flushes = [printing(process.stdout, 'info'), printing(process.stderr, 'error')];

process.exit = (code) => {
  for (const flush of flushes) flush();
  send({ exits: code ?? process.exitCode ?? 0, stack: new Error().stack });
  exit(code);
};
process.on('uncaughtException', (error) => send({ uncaught: described(error) }));
process.on('unhandledRejection', (reason) => send({ uncaught: described(reason) }));
process.on('beforeExit', () => {
  send({ idle: true });
  input.ref();
});

Error.stackTraceLimit = 50;

if (isNode) {
  // Processes and threads that the user's code starts do not begin with this text.
  process.execArgv = [];
  threads.Worker = class Worker extends threads.Worker {
    constructor(file, options) {
      super(file, { execArgv: [], ...options });
    }
  };
  syncBuiltinESMExports();
}

hold();
read(begun);
