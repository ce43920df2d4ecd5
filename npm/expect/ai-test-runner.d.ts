import type { Failure, Operator } from "./index.js";

export interface AIScriptResult {
  output?: unknown;
  messages?: unknown[];
  [key: string]: unknown;
}

export interface AIScriptExecutor {
  execute(asked: { script?: string; args: Record<string, any>; options: Record<string, any> }): Promise<AIScriptResult> | AIScriptResult;
}

export interface Fixture {
  title?: string;
  input?: unknown;
  output?: unknown;
  expect?: unknown;
  skip?: boolean | string;
  only?: boolean;
  not?: boolean;
  [key: string]: unknown;
}

export interface RunOptions {
  /** Defaults of all fixtures. */
  fixtureConfig?: Record<string, unknown>;
  userConfig?: Record<string, unknown>;
  scriptConfig?: Record<string, unknown>;
  skips?: boolean[] | Record<number, boolean>;
  strict?: unknown;
  disableHeuristicSchema?: boolean;
  operators?: Record<string, string | Operator> | (string | Operator)[];
  allowOperatorOverride?: boolean;
  /** Folder against which references to operators are resolved. */
  baseDir?: string;
  logVars?: boolean | "error";
  scoring?: boolean | "auto";
  maxScore?: number;
  passScore?: number;
  unassignedWeight?: number;
}

export interface ScoreDetail {
  key: string;
  title?: string;
  dimension?: string;
  critical?: boolean;
  weight: number;
  score: number;
  pass: boolean | null;
  details?: ScoreDetail[];
}

export interface Log {
  i: number;
  /** Milliseconds. */
  duration: number;
  passed: boolean;
  skipped?: boolean;
  title?: string;
  error?: Error;
  score?: number;
  scoreDetails?: ScoreDetail[];
  maxScore?: number;
  passScore?: number;
  failedCritical?: string[];
  failures?: Partial<Failure>[];
  input?: unknown;
  actual?: unknown;
  expected?: unknown;
  reason?: unknown;
  expectedSchema?: unknown;
  not?: boolean;
  script?: string;
  actualTrace?: unknown[];
  expectedTrace?: unknown;
  tools?: unknown[];
  vars?: Record<string, unknown>;
}

export interface RunResult {
  passedCount: number;
  failedCount: number;
  skippedCount: number;
  logs: Log[];
  /** Milliseconds. */
  duration: number;
}

export class AITestRunner {
  constructor(executor: AIScriptExecutor);
  run(script: string, fixtures: Fixture[], options?: RunOptions): Promise<RunResult>;
  on(event: "test:start", listener: (started: { i: number; script?: string; input?: unknown }) => void): this;
  on(event: "test:pass" | "test:fail" | "test:error" | "test:skip", listener: (log: Log) => void): this;
  once(event: string, listener: (...given: any[]) => void): this;
  off(event: string, listener: (...given: any[]) => void): this;
  emit(event: string, ...given: any[]): boolean;
}
