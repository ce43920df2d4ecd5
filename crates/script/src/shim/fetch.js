// `fetch` according to the standard, for text only. `ask(request)` makes the host send the request.
(function (ask) {
  'use strict';
  class Headers {
    #values = new Map();
    constructor(init = []) {
      const pairs = typeof init[Symbol.iterator] === 'function' ? init : Object.entries(init);
      for (const [name, value] of pairs) this.append(name, value);
    }
    append(name, value) {
      this.set(name, this.has(name) ? `${this.get(name)}, ${value}` : value);
    }
    set(name, value) {
      this.#values.set(String(name).toLowerCase(), String(value).trim());
    }
    get(name) {
      return this.#values.get(String(name).toLowerCase()) ?? null;
    }
    has(name) {
      return this.#values.has(String(name).toLowerCase());
    }
    delete(name) {
      this.#values.delete(String(name).toLowerCase());
    }
    forEach(callback, self) {
      for (const [name, value] of this) callback.call(self, value, name, this);
    }
    keys() {
      return this.#values.keys();
    }
    values() {
      return this.#values.values();
    }
    entries() {
      return this.#values.entries();
    }
    [Symbol.iterator]() {
      return this.entries();
    }
  }

  // Fields of a form. `fetch` does not send forms, but libraries test whether a body is one.
  class FormData {
    #fields = [];
    append(name, value) {
      this.#fields.push([String(name), String(value)]);
    }
    set(name, value) {
      this.delete(name);
      this.append(name, value);
    }
    get(name) {
      return this.getAll(name)[0] ?? null;
    }
    getAll(name) {
      return this.#fields.filter(([known]) => known === String(name)).map(([, value]) => value);
    }
    has(name) {
      return this.getAll(name).length > 0;
    }
    delete(name) {
      this.#fields = this.#fields.filter(([known]) => known !== String(name));
    }
    entries() {
      return this.#fields[Symbol.iterator]();
    }
    [Symbol.iterator]() {
      return this.entries();
    }
  }

  // The body of a response as a stream. It was received completely, so it is one chunk. `take()` returns the text.
  class BodyStream {
    #take;
    #hasEnded = false;
    #isLocked = false;
    constructor(take) {
      this.#take = take;
    }
    get locked() {
      return this.#isLocked;
    }
    async #read() {
      const text = this.#hasEnded ? '' : this.#take();
      this.#hasEnded = true;
      return text === '' ? { value: undefined, done: true } : { value: new TextEncoder().encode(text), done: false };
    }
    async cancel() {
      this.#hasEnded = true;
    }
    getReader() {
      if (this.#isLocked) throw new TypeError('the body is being read already');
      this.#isLocked = true;
      return {
        read: () => this.#read(),
        cancel: () => this.cancel(),
        releaseLock: () => {
          this.#isLocked = false;
        },
      };
    }
    async *[Symbol.asyncIterator]() {
      const reader = this.getReader();
      try {
        for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value;
      } finally {
        await reader.cancel();
        reader.releaseLock();
      }
    }
  }

  class Response {
    #text;
    #body;
    constructor(text = '', { status = 200, statusText = '', headers, url = '' } = {}) {
      this.#text = text === null ? '' : String(text);
      this.status = status;
      this.statusText = statusText;
      this.ok = status >= 200 && status < 300;
      this.headers = headers instanceof Headers ? headers : new Headers(headers);
      this.url = url;
      this.bodyUsed = false;
    }
    #take() {
      if (this.bodyUsed) throw new TypeError('the body has been read already');
      this.bodyUsed = true;
      return this.#text;
    }
    get body() {
      return (this.#body ??= new BodyStream(() => this.#take()));
    }
    async text() {
      return this.#take();
    }
    async json() {
      return JSON.parse(await this.text());
    }
    clone() {
      if (this.bodyUsed) throw new TypeError('the body has been read already');
      return new Response(this.#text, this);
    }
  }

  // Returns the body as text, and its default content type.
  const bodyOf = (body) => {
    if (body === undefined || body === null) return [undefined, undefined];
    if (typeof body === 'string') return [body, 'text/plain;charset=UTF-8'];
    if (body instanceof URLSearchParams) return [body.toString(), 'application/x-www-form-urlencoded;charset=UTF-8'];
    throw new TypeError('fetch takes a body that is text or URLSearchParams here; write `JSON.stringify(…)` for an object');
  };

  const abortedBy = (signal) =>
    new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }));

  async function fetch(input, { method = 'GET', headers, body, signal } = {}) {
    signal?.throwIfAborted();
    const sent = new Headers(headers);
    const [text, kind] = bodyOf(body);
    if (kind !== undefined && !sent.has('content-type')) sent.set('content-type', kind);
    const url = typeof input === 'string' ? input : (input.href ?? input.url);
    const request = { url: String(url), method: String(method).toUpperCase(), headers: [...sent], body: text };
    const answer = (async () => {
      try {
        return await ask(request);
      } catch (error) {
        throw new TypeError(error.message);
      }
    })();
    const { text: received, ...rest } = await (signal ? Promise.race([answer, abortedBy(signal)]) : answer);
    return new Response(received, rest);
  }

  for (const [name, value] of Object.entries({ fetch, FormData, Headers, Response })) {
    Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false });
  }
})
