import type { AgentMessage, Answer, AssertionCheck, CheckResult, CompareResult, Event, EventParams, ExpectResult, InlineSuite, Options, PlannedTrial, Problem, ShowResult, Trial, Verdict } from "./rpc";

export type * from "./rpc";

/** What an agent may need to know about its trial. */
export interface Context extends Omit<AgentMessage, "message"> {
  /** Aborted when the answer is no longer expected. */
  signal: AbortSignal;
}

/** A function that answers a message. */
export type AgentFunction = (message: string, context: Context) => string | Answer | Promise<string | Answer>;

export interface AgentSettings {
  /** Name in reports. Default: that of the function. */
  name?: string;
  /** True if the agent works in a directory: `context.directory`. */
  sandbox?: boolean;
  /** False if its answers cost nothing. Default: true. */
  costs?: boolean;
  /** Set if the OpenTelemetry spans of its instrumentation show what it did. The tracer provider needs `spanProcessor`. */
  traces?: "otlp";
}

/** A function that is an agent. */
export interface Agent extends Required<Omit<AgentSettings, "traces">> {
  settings: { sandbox: boolean; costs: boolean; traces?: "otlp" };
  traces?: "otlp";
  answer: AgentFunction;
}

/** Makes a function an agent. */
export function agent(answer: AgentFunction): Agent;
export function agent(settings: AgentSettings, answer: AgentFunction): Agent;

/** Sends finished spans with each reply. */
interface TrialSpanProcessor {
  onStart(): void;
  onEnd(span: any): void;
  forceFlush(): Promise<void>;
  shutdown(): Promise<void>;
}

/** Returns a span processor for the program's tracer provider, for agents with `traces`. `OTLPTraceExporter` is that of the program. */
export function spanProcessor(OTLPTraceExporter: new (config: { url: string }) => any): TrialSpanProcessor;

/** What an assertion may need to know about its trial. */
export interface CheckContext extends Omit<AssertionCheck, "arguments"> {
  /** Aborted when the verdict is no longer expected. */
  signal: AbortSignal;
}

/** A function that judges the last answer of an agent, which is empty if there is none. `given` is the value after its name. */
export type AssertionFunction = (answer: string, given: any, context: CheckContext) => boolean | Verdict | Promise<boolean | Verdict>;

type Compared = boolean | number | string | Record<string, unknown>;

/** A function that compares an actual and an expected value. A string says why the value does not match. */
export type OperatorFunction = (actual: any, expected: any, options: any, context: { signal: AbortSignal }) => Compared | Promise<Compared>;

export interface FunctionOptions {
  /** Name under which tests use it. Default: that of the function. */
  name?: string;
  /** Time limit of a call in milliseconds. Default: 30,000. */
  timeout?: number;
}

/** A function that is an assertion. */
export interface Assertion {
  name: string;
  settings: { timeout_ms?: number };
  check: AssertionFunction;
}

/** A function that is an operator. */
export interface Operator {
  name: string;
  settings: { timeout_ms?: number };
  compare: OperatorFunction;
}

/**
 * Makes a function an assertion, which tests use by its name. An `AssertionError` says that it does not hold; any other error
 * breaks the trial, because the test has a mistake.
 */
export function assertion(check: AssertionFunction): Assertion;
export function assertion(options: FunctionOptions, check: AssertionFunction): Assertion;

/** Makes a function an operator, which expectations use by its name with a `$`. */
export function operator(compare: OperatorFunction): Operator;
export function operator(options: FunctionOptions, compare: OperatorFunction): Operator;

export interface Selection extends Omit<Options, "agent"> {
  /** Files, directories, skills, or cases as `SUITE::CASE`. Default: all tests of the project. */
  targets?: string | string[];
  /** Agent that runs all cases: a name, a function, or a list of them. */
  agent?: string | Agent | AgentFunction | Array<string | Agent | AgentFunction>;
  /** Functions that cases use as agents by their names. */
  agents?: Array<Agent | AgentFunction>;
  /** Functions that cases use as assertions by their names. */
  assertions?: Array<Assertion | AssertionFunction>;
  /** Functions that expectations use as operators by their names. */
  operators?: Array<Operator | OperatorFunction>;
  /** Suites that are written in JavaScript. */
  suites?: InlineSuite[];
  /** Directory to which paths refer, and in which runs are recorded. */
  directory?: string;
}

export interface RunSettings extends Selection {
  /** Gets each event of the run. */
  onEvent?: (event: Event) => void;
  /** Stops the run. */
  signal?: AbortSignal;
}

/** A finished run. */
export class Run {
  /** Id of the run. */
  readonly id: string;
  /** Exit code that `trialrun run` would have. */
  readonly exitCode: number;
  /** True if everything passed. */
  readonly passed: boolean;
  /** The trials that did not pass, with their findings; empty if the run passed. */
  readonly failure: string;
  /** Finished trials, in the order in which they finished. */
  readonly trials: Trial[];
  readonly summary: Record<string, unknown>;
  readonly stopped_by: string | null;
  readonly hash: string | null;
  readonly problems: Problem[];
  readonly notes: string[];
  readonly left_over: string[];
  /** The run as the terminal shows it. */
  readonly text: string;
}

/** Runs tests and records the run. */
export function run(settings?: RunSettings): Promise<Run>;

export interface TrialSettings extends Omit<RunSettings, "targets" | "suites" | "agents"> {
  agent: NonNullable<Selection["agent"]>;
  /** Assertions, as in a conversation file. */
  expect?: Array<Record<string, unknown>>;
  /** Files in the agent's directory. */
  files?: Record<string, string>;
  /** Name of the case in the record. */
  name?: string;
  tags?: string[];
}

/** Runs one case that is written in JavaScript. Throws a `TrialrunError` if the case has an error. */
export function trial(prompt: string | string[], settings: TrialSettings): Promise<Run>;

/** Reads and compiles tests, without running anything. */
export function check(settings?: Selection): Promise<CheckResult>;

/** Returns the trials that `run` would run. */
export function list(settings?: Selection): Promise<PlannedTrial[]>;

/** Returns a recorded trial, as text and as JSON. */
export function show(trial: string, settings?: { directory?: string }): Promise<ShowResult>;

/** Compares two recorded runs. */
export function compare(before?: string, after?: string, settings?: { directory?: string }): Promise<CompareResult>;

export interface MatchSettings {
  strict?: boolean | "object" | "array" | "diff" | Array<"object" | "array" | "diff">;
  diff?: unknown;
  /** Functions that the expectation uses as operators. */
  operators?: Array<Operator | OperatorFunction>;
}

/** Matches a value with the `$operator` engine. */
export function expect(actual: unknown): {
  /** Returns the result. */
  match(expected: unknown, settings?: MatchSettings): Promise<ExpectResult>;
  /** Throws a `MismatchError` unless the value matches. */
  matches(expected: unknown, settings?: MatchSettings): Promise<ExpectResult>;
};

/** A request that could not be carried out. */
export class TrialrunError extends Error {
  readonly code: number;
  readonly data: Record<string, unknown>;
}

/** The program ended, or does not speak this version of the protocol. */
export class ProtocolError extends TrialrunError {}

/** A value does not match its expectation. */
export class MismatchError extends Error {
  readonly match: ExpectResult;
}

/** Thrown by an agent if something that it needs cannot be reached. The trial is then broken, not failed. */
export class Unreachable extends Error {}

/** Functions by name. */
export interface Functions {
  agents?: Record<string, Agent>;
  assertions?: Record<string, Assertion>;
  operators?: Record<string, Operator>;
}

/** A process of `trialrun rpc`. */
export class Client {
  static open(settings?: { directory?: string; path?: string }): Promise<Client>;
  call(method: string, params: Record<string, unknown>, functions?: Functions): Promise<unknown>;
  start(params: Record<string, unknown>, functions?: Functions, listener?: (event: EventParams) => void): { number: number; result: Promise<unknown> };
  cancel(number: number): Promise<boolean>;
  close(): Promise<void>;
}
