/** A mistake in an expectation or a template. */
export interface Problem {
  isError: boolean;
  /** One line, in lower case. */
  message: string;
  /** Ways to mend it. */
  help: string[];
}

/** An expectation or a template that cannot be used. */
export class ExpectationError extends Error {
  problems: Problem[];
}

/** A part of a value that does not match. */
export interface Failure {
  /** Path, such as `items[0].name`; empty for the whole value. */
  key: string;
  message: string | null;
  expected?: unknown;
  actual?: unknown;
  /** Pieces of text that are in both values, only in the expected one, or only in the actual one. */
  diff?: { part: "same" | "added" | "removed"; text: string }[];
  /** True if the whole does not pass because of it, whatever the score. */
  critical: boolean;
  /** True if it is unknown whether it matches. */
  undecided: boolean;
}

/** The score of a part. */
export interface Detail {
  key: string;
  title?: string;
  dimension?: string;
  critical: boolean;
  /** Share of the enclosing part, below 0 for a penalty. */
  weight: number;
  /** From 0 to 1. */
  score: number;
  status: "met" | "unmet" | "undecided";
  details?: Detail[];
}

export interface Result {
  /** `null` if it cannot be decided. */
  pass: boolean | null;
  /** From 0 to 1. What is undecided counts as 0. */
  score: number;
  /** The score if all that is undecided matches. */
  most: number;
  failures: Failure[];
  details: Detail[];
}

/**
 * An operator: returns true, false, a message of a failure, a score from 0 to 1, or a result with details. A function
 * with four parameters receives a context and a function that matches parts.
 */
export type Operator = ((actual: any, expected: any, fixture: any) => unknown)
  | ((actual: any, expected: any, context: any, validate: any) => unknown);

export interface Options {
  /** What is matched: a value, an agent's whole result, or a value against a JSON Schema. `value` if absent. */
  about?: "value" | "result" | "schema";
  /** True, or kinds of values that must not contain more than the expectation. */
  strict?: boolean | "object" | "array" | "diff" | ("object" | "array" | "diff")[];
  /** How strings are compared; see the operator `$diff`. */
  diff?: unknown;
  diffPermissive?: boolean;
  /** True if a map with a `type` of JSON Schema is an ordinary map. */
  disableHeuristicSchema?: boolean;
  /** Operators by their names, with or without `$`. They may return promises. */
  operators?: Record<string, Operator>;
  /** True if an operator of yours replaces a built-in one of the same name. */
  allowOperatorOverride?: boolean;
  maxScore?: number;
  passScore?: number;
  unassignedWeight?: number;
  autoConfidence?: boolean | "force";
  /** What expressions and operators see: variables, the input and the fixture. */
  data?: { variables?: Record<string, unknown>; input?: unknown; fixture?: unknown };
}

/** A compiled expectation. */
export class Expectation {
  private constructor();
  readonly warnings: Problem[];
  judge(actual: unknown): Promise<Result>;
  /** Frees its memory. This happens by itself when it is no longer used. */
  release(): void;
}

/** Prepares the engine, from a module or from a file or URL. Everything else does this by itself. */
export function init(source?: WebAssembly.Module | URL | string): Promise<unknown>;
/** Compiles an expectation. @throws ExpectationError if it cannot be used. */
export function compile(expected: unknown, options?: Options): Promise<Expectation>;
/** Matches a value. @throws ExpectationError if the expectation cannot be used. */
export function match(actual: unknown, expected: unknown, options?: Options): Promise<Result>;

export interface Matchers {
  /** @throws an `AssertionError` with all mismatches. */
  matches(expected: unknown, options?: Options): Promise<Result>;
}
export function expect(actual: unknown, options?: Options): Matchers & { not: Matchers };

export interface RenderOptions {
  /** Another dialect than `{{ }}`: `fstring`, `golang` or `env`. */
  format?: string;
  /** Milliseconds since 1970 for the functions that return times; the current time if absent. */
  now?: number;
  /** Seed of random numbers; 0 if absent. */
  seed?: number;
}
/** Resolves the templates in a value. Of several maps of variables, later ones take precedence. */
export function render<T = unknown>(value: unknown, variables?: Record<string, unknown> | Record<string, unknown>[], options?: RenderOptions): Promise<T>;

export interface DiffPart {
  value: string;
  added: boolean;
  removed: boolean;
  /** For JSON: path and value of the leaf. */
  path?: string;
  val?: unknown;
}
export function diff(expected: string, actual: string, kind?: "auto" | "chars" | "words" | "wordsWithSpace" | "lines" | "sentences" | "json"): Promise<DiffPart[]>;
/** True if an expectation contains a weight, so that `scoring: "auto"` scores it. */
export function hasWeight(expected: unknown): Promise<boolean>;
