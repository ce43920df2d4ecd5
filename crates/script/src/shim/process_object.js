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
  const line = (print) => ({
    isTTY: false,
    write(text) {
      print(String(text).replace(/\n$/, ''));
      return true;
    },
  });
  const hrtime = (since) => {
    const now = performance.now() * 1e6;
    const [seconds, nanoseconds] = [Math.floor(now / 1e9), Math.floor(now % 1e9)];
    if (since === undefined) return [seconds, nanoseconds];
    const passed = (seconds - since[0]) * 1e9 + nanoseconds - since[1];
    return [Math.floor(passed / 1e9), passed - Math.floor(passed / 1e9) * 1e9];
  };
  hrtime.bigint = () => BigInt(Math.floor(performance.now() * 1e6));
  const process = {
    env,
    hrtime,
    stdout: line((text) => console.log(text)),
    stderr: line((text) => console.error(text)),
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
    binding: refuse('binding', outside),
    memoryUsage: refuse('memoryUsage', outside),
    cpuUsage: refuse('cpuUsage', outside),
    resourceUsage: refuse('resourceUsage', outside),
    umask: refuse('umask', outside),
    getuid: refuse('getuid', outside),
    getgid: refuse('getgid', outside),
    exit: refuse('exit', outside),
    abort: refuse('abort', outside),
    kill: refuse('kill', outside),
    chdir: refuse('chdir', outside),
  };
  return { process };
})
