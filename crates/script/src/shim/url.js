// URLs according to the WHATWG standard. `ascii(host)` returns an international host name in its ASCII form.
(function (ascii) {
  'use strict';
  const ports = { 'http:': '80', 'https:': '443', 'ws:': '80', 'wss:': '443', 'ftp:': '21', 'file:': '' };
  const isSpecial = (protocol) => Object.hasOwn(ports, protocol);
  const encoder = new TextEncoder();
  const decoder = new TextDecoder();
  const hex = (byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  const escape = (text, unsafe) => {
    let escaped = '';
    for (const character of text.toWellFormed()) {
      const code = character.codePointAt(0);
      if (code > 0x7e || code < 0x20) for (const byte of encoder.encode(character)) escaped += hex(byte);
      else escaped += unsafe.includes(character) ? hex(code) : character;
    }
    return escaped;
  };
  const unescape = (text) => {
    const bytes = [];
    const source = encoder.encode(text);
    for (let at = 0; at < source.length; at += 1) {
      const pair = source[at] === 37 ? String.fromCharCode(source[at + 1], source[at + 2]) : '';
      if (/^[0-9a-f]{2}$/i.test(pair)) {
        bytes.push(Number.parseInt(pair, 16));
        at += 2;
      } else bytes.push(source[at]);
    }
    return decoder.decode(new Uint8Array(bytes));
  };
  const inPath = ' "#<>?`{}^';
  const inQuery = ' "#<>';
  const inFragment = ' "<>`';
  const inUser = ' "#<>?`{}/:;=@[\\]^|';

  // Parses an address of up to four decimal, octal or hexadecimal numbers; null if it is not one.
  const ipv4 = (host) => {
    const parts = host.split('.');
    if (parts.at(-1) === '' && parts.length > 1) parts.pop();
    if (!/^(\d+|0x[0-9a-f]*)$/i.test(parts.at(-1))) return null;
    if (parts.length > 4) throw new TypeError('Invalid URL');
    const numbers = parts.map((part) => {
      if (/^0x[0-9a-f]*$/i.test(part)) return part.length === 2 ? 0 : Number.parseInt(part, 16);
      if (/^0[0-7]+$/.test(part)) return Number.parseInt(part, 8);
      return /^\d+$/.test(part) && !/^0\d/.test(part) ? Number(part) : NaN;
    });
    const last = numbers.pop();
    const bad = numbers.some((number) => !(number <= 255)) || !(last < 256 ** (4 - numbers.length));
    if (bad) throw new TypeError('Invalid URL');
    const address = numbers.reduce((sum, number, index) => sum + number * 256 ** (3 - index), last);
    return [24, 16, 8, 0].map((shift) => Math.floor(address / 2 ** shift) % 256).join('.');
  };
  const ipv6 = (text) => {
    let source = text;
    const tail = /^(.*:)(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(source);
    if (tail) {
      const [a, b, c, d] = tail.slice(2).map(Number);
      if ([a, b, c, d].some((byte) => byte > 255)) throw new TypeError('Invalid URL');
      source = `${tail[1]}${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
    }
    const halves = source.split('::');
    const pieces = halves.map((half) => (half === '' ? [] : half.split(':')));
    const count = pieces.flat().length;
    const valid = pieces.flat().every((piece) => /^[0-9a-f]{1,4}$/i.test(piece));
    if (!valid || halves.length > 2 || (halves.length === 1 ? count !== 8 : count > 7)) throw new TypeError('Invalid URL');
    const zeros = Array(8 - count).fill('0');
    const all = (halves.length === 1 ? pieces[0] : [...pieces[0], ...zeros, ...pieces[1]]).map((piece) =>
      Number.parseInt(piece, 16).toString(16),
    );
    const longest = (all.join(':').match(/(?:^|:)0(?::0)+(?=:|$)/g) ?? []).sort((a, b) => b.length - a.length)[0];
    if (longest === undefined) return all.join(':');
    const shortened = all.join(':').replace(longest, ':');
    return shortened.endsWith(':') ? `${shortened}:` : shortened.replace(/^:(?!:)/, '::').replace(/([^:]):(?=:|$)/, '$1:');
  };
  const parseHost = (text, special) => {
    if (text.startsWith('[')) {
      if (!text.endsWith(']')) throw new TypeError('Invalid URL');
      return `[${ipv6(text.slice(1, -1))}]`;
    }
    if (!special) {
      if (/[\0\t\n\r #/<>?@[\\\]^|]/.test(text)) throw new TypeError('Invalid URL');
      return escape(text, '');
    }
    const host = unescape(text).toLowerCase();
    if (host === '' || /[\0-\x20"#%/:<>?@[\\\]^`{|}\x7f]/.test(host)) throw new TypeError('Invalid URL');
    const name = /[^\0-\x7f]/.test(host) ? ascii(host) : host;
    if (name === undefined) throw new TypeError('Invalid URL');
    return ipv4(name) ?? name;
  };
  const dots = (segment) => segment.replace(/%2e/gi, '.');
  const parsePath = (text, special, base) => {
    const path = [...base];
    const segments = (special ? text.replaceAll('\\', '/') : text).split('/');
    segments.forEach((segment, index) => {
      const isLast = index === segments.length - 1;
      if (dots(segment) === '..') {
        path.pop();
        if (isLast) path.push('');
      } else if (dots(segment) === '.') {
        if (isLast) path.push('');
      } else path.push(escape(segment, inPath));
    });
    return path;
  };
  const cut = (text, mark) => {
    const at = text.indexOf(mark);
    return at < 0 ? [text, null] : [text.slice(0, at), text.slice(at + 1)];
  };

  function setAuthority(parts, text) {
    const special = isSpecial(parts.protocol);
    const at = text.lastIndexOf('@');
    if (at >= 0) {
      const [user, password] = cut(text.slice(0, at), ':');
      parts.username = escape(user, inUser);
      parts.password = escape(password ?? '', inUser);
    }
    setHost(parts, text.slice(at + 1), special);
    if (at >= 0 && parts.host === '') throw new TypeError('Invalid URL');
  }
  function setHost(parts, text, special) {
    const port = /:(\d*)$/.exec(text);
    const host = port ? text.slice(0, port.index) : text;
    if (host === '' && (special && parts.protocol !== 'file:' || port)) throw new TypeError('Invalid URL');
    parts.host = host === '' ? '' : parseHost(host, special);
    if (parts.protocol === 'file:' && parts.host === 'localhost') parts.host = '';
    if (port && port[1] !== '') setPort(parts, port[1]);
  }
  function setPort(parts, text) {
    const number = Number(text);
    if (number > 65535) throw new TypeError('Invalid URL');
    parts.port = String(number) === ports[parts.protocol] ? '' : String(number);
  }
  function setPath(parts, text) {
    const special = isSpecial(parts.protocol);
    const rest = special ? text.replaceAll('\\', '/') : text;
    parts.path = rest === '' ? (special ? [''] : []) : parsePath(rest.replace(/^\//, ''), special, []);
  }

  function parse(input, base) {
    const text = String(input).replace(/^[\0-\x20]+|[\0-\x20]+$/g, '').replace(/[\t\n\r]/g, '');
    const [beforeHash, hash] = cut(text, '#');
    const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(beforeHash);
    const protocol = scheme ? scheme[0].toLowerCase() : base?.protocol;
    if (protocol === undefined) throw new TypeError('Invalid URL');
    const special = isSpecial(protocol);
    const [given, query] = cut(scheme ? beforeHash.slice(scheme[0].length) : beforeHash, '?');
    let rest = special ? given.replaceAll('\\', '/') : given;
    const parts = { protocol, username: '', password: '', host: null, port: '', path: [], opaque: null, query: null, hash: null };
    if (query !== null) parts.query = escape(query, special ? `${inQuery}'` : inQuery);
    if (hash !== null) parts.hash = escape(hash, inFragment);
    const isRelative = base !== undefined && (!scheme || (special && protocol === base.protocol && !rest.startsWith('/')));
    if (isRelative && base.opaque !== null) {
      if (rest !== '' || query !== null) throw new TypeError('Invalid URL');
      return { ...base, path: base.path, hash: parts.hash };
    }
    if (special && protocol !== 'file:' && !isRelative) rest = `//${rest.replace(/^\/*/, '')}`;
    if (rest.startsWith('//')) {
      const end = rest.indexOf('/', 2);
      setAuthority(parts, end < 0 ? rest.slice(2) : rest.slice(2, end));
      setPath(parts, end < 0 ? '' : rest.slice(end));
      return parts;
    }
    if (isRelative) {
      const { username, password, host, port } = base;
      Object.assign(parts, { username, password, host, port });
      if (rest === '') {
        parts.path = [...base.path];
        if (query === null) parts.query = base.query;
      } else if (rest.startsWith('/')) setPath(parts, rest);
      else parts.path = parsePath(rest, special, base.path.slice(0, -1));
      return parts;
    }
    if (protocol === 'file:') {
      parts.host = '';
      setPath(parts, rest);
    } else if (rest.startsWith('/')) setPath(parts, rest);
    else parts.opaque = escape(rest, '');
    return parts;
  }

  const write = (text) => {
    let written = '';
    for (const character of String(text).toWellFormed()) {
      if (/[A-Za-z0-9*\-._]/.test(character)) written += character;
      else if (character === ' ') written += '+';
      else for (const byte of encoder.encode(character)) written += hex(byte);
    }
    return written;
  };
  const read = (text) => unescape(text.replaceAll('+', ' '));

  let owner;
  class URLSearchParams {
    #pairs = [];
    #changed = () => {};
    constructor(init = '') {
      if (owner) {
        this.#changed = owner;
        owner = undefined;
      }
      if (init === null || typeof init !== 'object') {
        const query = String(init).replace(/^\?/, '');
        for (const pair of query.split('&')) {
          if (pair === '') continue;
          const [name, value] = cut(pair, '=');
          this.#pairs.push([read(name), read(value ?? '')]);
        }
      } else {
        const pairs = typeof init[Symbol.iterator] === 'function' ? init : Object.entries(init);
        for (const pair of pairs) {
          const [name, value, more] = [...pair];
          if (value === undefined || more !== undefined) throw new TypeError('Each pair is a name and a value');
          this.#pairs.push([String(name), String(value)]);
        }
      }
    }
    get size() {
      return this.#pairs.length;
    }
    append(name, value) {
      this.#pairs.push([String(name), String(value)]);
      this.#changed(this);
    }
    delete(name, value) {
      this.#pairs = this.#pairs.filter(([key, held]) => key !== String(name) || (value !== undefined && held !== String(value)));
      this.#changed(this);
    }
    get(name) {
      return this.#pairs.find(([key]) => key === String(name))?.[1] ?? null;
    }
    getAll(name) {
      return this.#pairs.filter(([key]) => key === String(name)).map(([, value]) => value);
    }
    has(name, value) {
      return this.#pairs.some(([key, held]) => key === String(name) && (value === undefined || held === String(value)));
    }
    set(name, value) {
      const at = this.#pairs.findIndex(([key]) => key === String(name));
      if (at < 0) this.#pairs.push([String(name), String(value)]);
      else {
        this.#pairs[at][1] = String(value);
        this.#pairs = this.#pairs.filter(([key], index) => key !== String(name) || index === at);
      }
      this.#changed(this);
    }
    sort() {
      this.#pairs.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
      this.#changed(this);
    }
    forEach(call, self) {
      for (const [name, value] of this) call.call(self, value, name, this);
    }
    *entries() {
      for (const [name, value] of this.#pairs) yield [name, value];
    }
    *keys() {
      for (const [name] of this.#pairs) yield name;
    }
    *values() {
      for (const [, value] of this.#pairs) yield value;
    }
    [Symbol.iterator]() {
      return this.entries();
    }
    toString() {
      return this.#pairs.map(([name, value]) => `${write(name)}=${write(value)}`).join('&');
    }
    get [Symbol.toStringTag]() {
      return 'URLSearchParams';
    }
  }

  class URL {
    #parts;
    #params;
    constructor(input, base) {
      try {
        this.#parts = parse(input, base === undefined ? undefined : parse(base));
      } catch (error) {
        if (!(error instanceof TypeError) || error.message !== 'Invalid URL') throw error;
        const invalid = new TypeError(`Invalid URL: ${input}`);
        invalid.code = 'ERR_INVALID_URL';
        throw invalid;
      }
    }
    static canParse(input, base) {
      return URL.parse(input, base) !== null;
    }
    static parse(input, base) {
      try {
        return new URL(input, base);
      } catch {
        return null;
      }
    }
    #set(change) {
      const changed = { ...this.#parts, path: [...this.#parts.path] };
      try {
        change(changed);
      } catch {
        return;
      }
      this.#parts = changed;
    }
    get href() {
      const { protocol, username, password, host, port, query, hash } = this.#parts;
      const user = username !== '' || password !== '' ? `${username}${password === '' ? '' : `:${password}`}@` : '';
      const authority = host === null ? '' : `//${user}${host}${port === '' ? '' : `:${port}`}`;
      const guard = host === null && this.#parts.path.length > 1 && this.#parts.path[0] === '' ? '/.' : '';
      const tail = (query === null ? '' : `?${query}`) + (hash === null ? '' : `#${hash}`);
      return protocol + authority + guard + this.pathname + tail;
    }
    set href(value) {
      this.#parts = new URL(value).#parts;
      this.#params = undefined;
    }
    get origin() {
      const { protocol } = this.#parts;
      return isSpecial(protocol) && protocol !== 'file:' ? `${protocol}//${this.host}` : 'null';
    }
    get protocol() {
      return this.#parts.protocol;
    }
    set protocol(value) {
      const scheme = /^([a-z][a-z0-9+.-]*):?/i.exec(String(value));
      this.#set((parts) => {
        const protocol = `${scheme[1].toLowerCase()}:`;
        if (isSpecial(protocol) !== isSpecial(parts.protocol)) return;
        parts.protocol = protocol;
        if (parts.port === ports[protocol]) parts.port = '';
      });
    }
    get username() {
      return this.#parts.username;
    }
    set username(value) {
      if (this.#parts.host) this.#set((parts) => void (parts.username = escape(String(value), inUser)));
    }
    get password() {
      return this.#parts.password;
    }
    set password(value) {
      if (this.#parts.host) this.#set((parts) => void (parts.password = escape(String(value), inUser)));
    }
    get host() {
      const { host, port } = this.#parts;
      return (host ?? '') + (port === '' ? '' : `:${port}`);
    }
    set host(value) {
      if (this.#parts.opaque === null) this.#set((parts) => setHost(parts, String(value), isSpecial(parts.protocol)));
    }
    get hostname() {
      return this.#parts.host ?? '';
    }
    set hostname(value) {
      if (this.#parts.opaque !== null) return;
      this.#set((parts) => void (parts.host = parseHost(String(value), isSpecial(parts.protocol))));
    }
    get port() {
      return this.#parts.port;
    }
    set port(value) {
      if (!this.#parts.host || this.#parts.protocol === 'file:') return;
      const digits = /^\d*/.exec(String(value))[0];
      this.#set((parts) => (digits === '' ? void (parts.port = '') : setPort(parts, digits)));
    }
    get pathname() {
      const { opaque, path } = this.#parts;
      return opaque ?? path.map((segment) => `/${segment}`).join('');
    }
    set pathname(value) {
      if (this.#parts.opaque === null) this.#set((parts) => setPath(parts, String(value).replace(/[?#]/g, encodeURIComponent)));
    }
    get search() {
      return this.#parts.query ? `?${this.#parts.query}` : '';
    }
    set search(value) {
      const query = String(value).replace(/^\?/, '');
      const unsafe = isSpecial(this.#parts.protocol) ? `${inQuery}'` : inQuery;
      this.#parts = { ...this.#parts, query: query === '' ? null : escape(query, unsafe) };
      this.#params = undefined;
    }
    get searchParams() {
      if (this.#params === undefined) {
        owner = (params) => {
          const query = params.toString();
          this.#parts = { ...this.#parts, query: query === '' ? null : query };
        };
        this.#params = new URLSearchParams(this.#parts.query ?? '');
      }
      return this.#params;
    }
    get hash() {
      return this.#parts.hash ? `#${this.#parts.hash}` : '';
    }
    set hash(value) {
      const hash = String(value).replace(/^#/, '');
      this.#parts = { ...this.#parts, hash: hash === '' ? null : escape(hash, inFragment) };
    }
    toString() {
      return this.href;
    }
    toJSON() {
      return this.href;
    }
    get [Symbol.toStringTag]() {
      return 'URL';
    }
  }
  return { URL, URLSearchParams };
})
