// Events and abort signals, as far as the standards define them without a document.
(function () {
  'use strict';
  const states = new WeakMap();
  class Event {
    constructor(type, { bubbles = false, cancelable = false, composed = false } = {}) {
      if (type === undefined) throw new TypeError('an Event needs a type');
      states.set(this, { target: null, canceled: false, stopped: false });
      Object.assign(this, { bubbles: Boolean(bubbles), cancelable: Boolean(cancelable), composed: Boolean(composed) });
      this.type = String(type);
      this.timeStamp = performance.now();
    }
    get target() {
      return states.get(this).target;
    }
    get currentTarget() {
      return states.get(this).target;
    }
    get defaultPrevented() {
      return states.get(this).canceled;
    }
    preventDefault() {
      if (this.cancelable) states.get(this).canceled = true;
    }
    stopPropagation() {}
    stopImmediatePropagation() {
      states.get(this).stopped = true;
    }
  }
  class CustomEvent extends Event {
    constructor(type, options = {}) {
      super(type, options);
      this.detail = options.detail ?? null;
    }
  }

  const listeners = new WeakMap();
  const of = (target) => {
    if (!listeners.has(target)) listeners.set(target, []);
    return listeners.get(target);
  };
  class EventTarget {
    addEventListener(type, listener, options) {
      const { once = false, signal } = typeof options === 'object' && options !== null ? options : {};
      const all = of(this);
      if (!listener || signal?.aborted) return;
      if (all.some((one) => one.type === type && one.listener === listener)) return;
      all.push({ type, listener, once });
      signal?.addEventListener('abort', () => this.removeEventListener(type, listener), { once: true });
    }
    removeEventListener(type, listener) {
      const all = of(this);
      const at = all.findIndex((one) => one.type === type && one.listener === listener);
      if (at >= 0) all.splice(at, 1);
    }
    dispatchEvent(event) {
      const state = states.get(event);
      state.target = this;
      const own = this[`on${event.type}`];
      const called = of(this).filter((one) => one.type === event.type);
      if (typeof own === 'function') called.unshift({ type: event.type, listener: own, once: false });
      for (const { type, listener, once } of called) {
        if (state.stopped) break;
        if (once) this.removeEventListener(type, listener);
        if (typeof listener === 'function') listener.call(this, event);
        else listener.handleEvent(event);
      }
      return !state.canceled;
    }
  }

  const aborted = new WeakMap();
  const KEY = {};
  const abort = (signal, reason) => {
    if (aborted.has(signal)) return;
    aborted.set(signal, reason === undefined ? new DOMException('This operation was aborted', 'AbortError') : reason);
    signal.dispatchEvent(new Event('abort'));
  };
  class AbortSignal extends EventTarget {
    constructor(key) {
      if (key !== KEY) throw new TypeError('a signal is made by `new AbortController()`');
      super();
      this.onabort = null;
    }
    get aborted() {
      return aborted.has(this);
    }
    get reason() {
      return aborted.get(this);
    }
    throwIfAborted() {
      if (this.aborted) throw this.reason;
    }
    static abort(reason) {
      const signal = new AbortSignal(KEY);
      abort(signal, reason);
      return signal;
    }
    static timeout(milliseconds) {
      const signal = new AbortSignal(KEY);
      const because = new DOMException('The operation was aborted due to timeout', 'TimeoutError');
      setTimeout(() => abort(signal, because), milliseconds);
      return signal;
    }
    static any(signals) {
      const signal = new AbortSignal(KEY);
      for (const one of signals) {
        if (one.aborted) abort(signal, one.reason);
        else one.addEventListener('abort', () => abort(signal, one.reason), { once: true });
      }
      return signal;
    }
  }
  class AbortController {
    constructor() {
      Object.defineProperty(this, 'signal', { value: new AbortSignal(KEY), enumerable: true });
    }
    abort(reason) {
      abort(this.signal, reason);
    }
  }
  return { Event, CustomEvent, EventTarget, AbortSignal, AbortController };
})
