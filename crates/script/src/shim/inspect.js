// Formats values as readable text.
(function () {
  'use strict';
  const identifier = /^[A-Za-z_$][\w$]*$/;
  const quote = (text) => {
    const mark = !text.includes("'") ? "'" : !text.includes('"') ? '"' : !text.includes('`') ? '`' : "'";
    const inner = JSON.stringify(text).slice(1, -1).replace(/\\"/g, '"');
    return mark + inner.replaceAll(mark, `\\${mark}`) + mark;
  };
  const nameOf = (value) => {
    const prototype = Object.getPrototypeOf(value);
    if (prototype === null) return '[Object: null prototype]';
    const name = prototype.constructor?.name;
    return typeof name === 'string' && name !== '' ? name : 'Object';
  };
  const join = (open, parts, close, indent) => {
    if (parts.length === 0) return open + close;
    const line = `${open} ${parts.join(', ')} ${close}`;
    if (line.length + indent.length <= 72 && !line.includes('\n')) return line;
    return `${open}\n${parts.map((part) => `${indent}  ${part}`).join(',\n')}\n${indent}${close}`;
  };
  const show = (value, depth, seen, indent) => {
    switch (typeof value) {
      case 'string':
        return quote(value);
      case 'bigint':
        return `${value}n`;
      case 'number':
        return Object.is(value, -0) ? '-0' : String(value);
      case 'symbol':
        return value.toString();
      case 'function':
        return /^class\b/.test(Function.prototype.toString.call(value))
          ? `[class ${value.name || '(anonymous)'}]`
          : `[Function${value.name ? `: ${value.name}` : ' (anonymous)'}]`;
      case 'object':
        break;
      default:
        return String(value);
    }
    if (value === null) return 'null';
    if (seen.includes(value)) return '[Circular]';
    if (value instanceof RegExp) return String(value);
    if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'Invalid Date' : value.toISOString();
    if (value instanceof Error) {
      const stack = typeof value.stack === 'string' && value.stack !== '' ? `\n${value.stack.trimEnd()}` : '';
      return `${value.name}: ${value.message}${stack}`;
    }
    if (value instanceof Promise) return 'Promise {}';
    const name = nameOf(value);
    if (depth < 0) return Array.isArray(value) ? '[Array]' : `[${name}]`;
    const inner = (item) => show(item, depth - 1, [...seen, value], `${indent}  `);
    const key = (name) => (identifier.test(name) ? name : quote(name));
    const isGetter = (name) => Object.getOwnPropertyDescriptor(value, name)?.get !== undefined;
    const shown = (name) => (isGetter(name) ? '[Getter]' : inner(value[name]));
    const entries = (names) => names.map((name) => `${key(name)}: ${shown(name)}`);
    if (Array.isArray(value)) {
      const shown = value.slice(0, 100).map(inner);
      if (value.length > 100) shown.push(`... ${value.length - 100} more items`);
      return join('[', shown, ']', indent);
    }
    if (value instanceof Map) {
      return join(`Map(${value.size}) {`, [...value].map(([name, item]) => `${inner(name)} => ${inner(item)}`), '}', indent);
    }
    if (value instanceof Set) return join(`Set(${value.size}) {`, [...value].map(inner), '}', indent);
    if (ArrayBuffer.isView(value) && !(value instanceof DataView)) {
      return join(`${name}(${value.length}) [`, [...value.slice(0, 100)].map(String), ']', indent);
    }
    const open = name === 'Object' ? '{' : `${name} {`;
    return join(open, entries(Object.keys(value)), '}', indent);
  };
  const inspect = (value, options) => {
    const depth = options === null || options?.depth === null ? Infinity : (options?.depth ?? 2);
    return show(value, depth, [], '');
  };
  const format = (...parts) => {
    let text = '';
    let next = 0;
    if (typeof parts[0] === 'string') {
      next = 1;
      text = parts[0].replace(/%[sdifjoOc%]/g, (directive) => {
        if (directive === '%%') return '%';
        if (next >= parts.length) return directive;
        const part = parts[next++];
        switch (directive) {
          case '%s':
            return typeof part === 'string' ? part : inspect(part, { depth: 0 });
          case '%d':
            return String(Number(part));
          case '%i':
            return String(Number.parseInt(part, 10));
          case '%f':
            return String(Number.parseFloat(part));
          case '%j':
            return JSON.stringify(part);
          case '%c':
            return '';
          default:
            return inspect(part);
        }
      });
    }
    const rest = parts.slice(next).map((part) => (typeof part === 'string' ? part : inspect(part)));
    return next > 0 ? [text, ...rest].join(' ') : rest.join(' ');
  };
  return { inspect, format };
})
