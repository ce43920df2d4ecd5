// Passes output to `write(level, line)`; `inspector()` returns the functions that format values.
(function (write, inspector) {
  'use strict';
  let inspect;
  const format = (...parts) => {
    if (parts.length === 1 && typeof parts[0] === 'string') return parts[0];
    inspect ??= inspector();
    return inspect.format(...parts);
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
  const console = {
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
  };
  const reset = () => {
    indent = '';
    counts.clear();
  };
  return { console, reset };
})
