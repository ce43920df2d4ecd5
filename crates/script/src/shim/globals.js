// Called once with what only the program can do, the variables of `process.env` and the working directory.
(function (hooks, env, directory) {
  'use strict';
  const { write, timer, clear, source } = hooks;
  const { defineProperty } = Object;
  const define = (object, name, value) =>
    defineProperty(object, name, { value, writable: true, configurable: true, enumerable: false });

  // Evaluates a source when one of its names is first looked at.
  const lazily = (names, make) => {
    let made;
    for (const name of names) {
      if (name in globalThis) continue;
      defineProperty(globalThis, name, {
        configurable: true,
        enumerable: false,
        get() {
          made ??= make();
          define(globalThis, name, made[name]);
          return made[name];
        },
        set(value) {
          define(globalThis, name, value);
        },
      });
    }
  };
  let inspector;
  const format = (...parts) => {
    if (parts.length === 1 && typeof parts[0] === 'string') return parts[0];
    inspector ??= source('inspect')();
    return inspector.format(...parts);
  };

  let indent = '';
  const counts = new Map();
  const say = (level) => (...parts) => {
    for (const line of format(...parts).split('\n')) write(level, indent + line);
  };
  const log = say(1);
  const error = say(3);
  const group = (...parts) => {
    if (parts.length > 0) log(...parts);
    indent += '  ';
  };
  define(globalThis, 'console', {
    log,
    info: log,
    debug: say(0),
    trace: say(0),
    warn: say(2),
    error,
    dir: (value) => log(value),
    table: (value) => log(value),
    group,
    groupCollapsed: group,
    groupEnd() {
      indent = indent.slice(2);
    },
    assert(condition, ...parts) {
      if (!condition) error(...(parts.length > 0 ? ['Assertion failed:', ...parts] : ['Assertion failed']));
    },
    count(label = 'default') {
      counts.set(label, (counts.get(label) ?? 0) + 1);
      log(`${label}: ${counts.get(label)}`);
    },
    countReset: (label = 'default') => void counts.delete(label),
    time() {},
    timeEnd() {},
    timeLog() {},
  });

  const schedule = (name, again) => {
    const start = (callback, wait, ...parts) => {
      if (typeof callback !== 'function') throw new TypeError(`${name} takes a function`);
      return timer(parts.length > 0 ? () => callback(...parts) : () => callback(), Number(wait), again);
    };
    defineProperty(start, 'name', { value: name });
    define(globalThis, name, start);
  };
  schedule('setTimeout', false);
  schedule('setInterval', true);
  define(globalThis, 'clearTimeout', function clearTimeout(id) {
    clear(id);
  });
  define(globalThis, 'clearInterval', function clearInterval(id) {
    clear(id);
  });

  // The engine's own loses what the callback throws; a rejected promise is noticed.
  const resolved = Promise.resolve();
  const then = Promise.prototype.then;
  const apply = Reflect.apply;
  define(globalThis, 'queueMicrotask', function queueMicrotask(callback) {
    if (typeof callback !== 'function') throw new TypeError('queueMicrotask takes a function');
    apply(then, resolved, [() => callback()]);
  });

  const refuse = (name, because) => () => {
    throw new Error(`process.${name} is not available here: ${because}`);
  };
  const outside = 'a script cannot act on the program it runs in';
  define(globalThis, 'process', {
    env,
    argv: [],
    execArgv: [],
    version: '',
    versions: {},
    platform: 'linux',
    arch: '',
    pid: 0,
    title: '',
    cwd: () => directory,
    nextTick: (callback, ...parts) => queueMicrotask(() => callback(...parts)),
    uptime: () => performance.now() / 1000,
    emitWarning: (warning) => console.warn(warning?.message ?? warning),
    on: () => process,
    once: () => process,
    off: () => process,
    exit: refuse('exit', outside),
    abort: refuse('abort', outside),
    kill: refuse('kill', outside),
    chdir: refuse('chdir', outside),
  });
  lazily(['URL', 'URLSearchParams'], () => source('url')());
  lazily(['TextEncoder', 'TextDecoder', 'atob', 'btoa'], () => source('text')());
  lazily(['structuredClone'], () => source('clone')());
})
