// Globals that are available to tests in addition to the language itself. Tests run in trialrun, not in Node.js or a browser.

declare const console: Record<"debug" | "error" | "info" | "log" | "trace" | "warn", (...values: unknown[]) => void>;
declare function setTimeout(callback: (...values: any[]) => void, milliseconds?: number, ...values: any[]): number;
declare function setInterval(callback: (...values: any[]) => void, milliseconds?: number, ...values: any[]): number;
declare function clearTimeout(timer?: number): void;
declare function clearInterval(timer?: number): void;
declare function queueMicrotask(callback: () => void): void;
declare function structuredClone<Value>(value: Value): Value;
declare function atob(text: string): string;
declare function btoa(text: string): string;

declare const performance: { now(): number };

/** Tests do not see variables whose names indicate a secret. */
declare const process: { readonly env: Record<string, string | undefined>; cwd(): string; readonly platform: string };

declare const crypto: {
  getRandomValues<Numbers extends ArrayBufferView>(numbers: Numbers): Numbers;
  randomUUID(): `${string}-${string}-${string}-${string}-${string}`;
};

declare class URL {
  constructor(url: string | URL, base?: string | URL);
  static canParse(url: string | URL, base?: string | URL): boolean;
  href: string;
  readonly origin: string;
  protocol: string;
  username: string;
  password: string;
  host: string;
  hostname: string;
  port: string;
  pathname: string;
  search: string;
  readonly searchParams: URLSearchParams;
  hash: string;
  toString(): string;
  toJSON(): string;
}

declare class URLSearchParams implements Iterable<[string, string]> {
  constructor(values?: string | Record<string, string> | Iterable<readonly [string, string]>);
  append(name: string, value: string): void;
  delete(name: string): void;
  get(name: string): string | null;
  getAll(name: string): string[];
  has(name: string): boolean;
  set(name: string, value: string): void;
  toString(): string;
  [Symbol.iterator](): IterableIterator<[string, string]>;
}

declare class TextEncoder {
  encode(text?: string): Uint8Array;
}

declare class TextDecoder {
  constructor(encoding?: string, options?: { fatal?: boolean; ignoreBOM?: boolean });
  decode(bytes?: ArrayBuffer | ArrayBufferView): string;
}

declare class Event {
  constructor(type: string, options?: { bubbles?: boolean; cancelable?: boolean; composed?: boolean });
  readonly type: string;
  readonly target: EventTarget | null;
  readonly defaultPrevented: boolean;
  preventDefault(): void;
}

declare class EventTarget {
  addEventListener(type: string, listener: (event: Event) => void, options?: { once?: boolean; signal?: AbortSignal }): void;
  removeEventListener(type: string, listener: (event: Event) => void): void;
  dispatchEvent(event: Event): boolean;
}

declare class AbortSignal extends EventTarget {
  static abort(reason?: unknown): AbortSignal;
  static timeout(milliseconds: number): AbortSignal;
  static any(signals: Iterable<AbortSignal>): AbortSignal;
  readonly aborted: boolean;
  readonly reason: any;
  throwIfAborted(): void;
}

declare class AbortController {
  readonly signal: AbortSignal;
  abort(reason?: unknown): void;
}
