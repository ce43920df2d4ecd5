// Defines the globals in addition to those of the language. `source(name)` creates a global on first use, and
// `isLimit(error)` is for the program's own modules.
(function (source, isLimit) {
  'use strict';
  const { defineProperty } = Object;
  const define = (name, value) =>
    defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false });
  const lazily = (from, names) => {
    let made;
    for (const name of names) {
      defineProperty(globalThis, name, {
        configurable: true,
        enumerable: false,
        get() {
          made ??= source(from);
          define(name, made[name]);
          return made[name];
        },
        set(value) {
          define(name, value);
        },
      });
    }
  };
  defineProperty(globalThis, Symbol.for('trialrun.isLimit'), { value: isLimit });
  lazily('console', ['console']);
  lazily('schedule', ['setTimeout', 'setInterval', 'clearTimeout', 'clearInterval', 'queueMicrotask']);
  lazily('process', ['process']);
  lazily('url', ['URL', 'URLSearchParams']);
  lazily('text', ['TextEncoder', 'TextDecoder']);
  lazily('clone', ['structuredClone']);
  lazily('crypto', ['crypto']);
  lazily('buffer', ['Buffer']);
  lazily('event', ['Event', 'CustomEvent', 'EventTarget', 'AbortSignal', 'AbortController']);
})
