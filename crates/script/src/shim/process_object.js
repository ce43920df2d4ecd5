// Creates the `process` object with these variables and this working directory. The values of `withheld` variables are
// not available to scripts.
(function (env, withheld, directory) {
  'use strict';
  for (const name of withheld) {
    Object.defineProperty(env, name, {
      enumerable: false,
      configurable: true,
      get() {
        throw new ReferenceError(`process.env.${name} is not available here: it is a secret by its name, and scripts are given none`);
      },
      set(value) {
        Object.defineProperty(env, name, { value, writable: true, enumerable: true });
      },
    });
  }
  const refuse = (name, because) => () => {
    throw new ReferenceError(`process.${name} is not available here: ${because}`);
  };
  const outside = 'a script cannot act on the program it runs in';
  const process = {
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
  };
  return { process };
})
