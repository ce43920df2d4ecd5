// Timers of the program: `timer(callback, milliseconds, again)` returns an id, which `clear` accepts.
(function (timer, clear) {
  'use strict';
  const start = (name, again) => {
    const begin = (callback, wait, ...parts) => {
      if (typeof callback !== 'function') throw new TypeError(`${name} takes a function`);
      return timer(parts.length > 0 ? () => callback(...parts) : () => callback(), Number(wait), again);
    };
    return Object.defineProperty(begin, 'name', { value: name });
  };
  const resolved = Promise.resolve();
  const { then } = Promise.prototype;
  const { apply } = Reflect;
  return {
    setTimeout: start('setTimeout', false),
    setInterval: start('setInterval', true),
    clearTimeout: function clearTimeout(id) {
      clear(id);
    },
    clearInterval: function clearInterval(id) {
      clear(id);
    },
    // The engine's own function ignores exceptions of the callback; a rejected promise is reported.
    queueMicrotask: function queueMicrotask(callback) {
      if (typeof callback !== 'function') throw new TypeError('queueMicrotask takes a function');
      apply(then, resolved, [() => callback()]);
    },
  };
})
