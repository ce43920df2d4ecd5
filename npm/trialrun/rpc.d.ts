// Types of the messages of `trialrun rpc`. Generated from its schema (`trialrun schema rpc`).

/** A place in a file. */
export interface Excerpt {
  /** Path as the user would write it. */
  file: string;
  /** Line, from 1. */
  line: number;
  /** Column, from 1. */
  column: number;
  /** The whole line. */
  text: string;
}

/** A problem in the user's files. */
export interface Problem {
  /** An error prevents the run. */
  severity: "warning" | "error";
  /** Description in one line. */
  message: string;
  /** Location in a file. */
  source: Excerpt | null;
  /** Label next to the underlined text. */
  label: string | null;
  /** Ways to fix it. */
  help: Array<string>;
}

/** A place that does not match an expectation. */
export interface Failure {
  /** Path of the place; empty for the whole value. */
  key: string;
  /** Description in one line. */
  message: string;
  /** Expected value. */
  expected?: unknown;
  /** Actual value; absent if there is none. */
  actual?: unknown;
  /** True if it makes the whole assertion fail. */
  critical: boolean;
  /** Location in the user's file. */
  source?: Excerpt;
}

/** Result of an assertion. */
export interface Finding {
  /** Id of the assertion. */
  id: string;
  /** Type of the assertion, such as `tool_called`. */
  type: string;
  /** Display name. */
  title?: string;
  /** Result. */
  status: "met" | "unmet" | "undecided";
  /** Score from 0 to 1; absent if undecided. */
  score?: number;
  /** Reason in one line. */
  because: string;
  /** Location in the user's file; absent for implicit assertions. */
  source?: Excerpt;
  /** Places that do not match. */
  failures?: Array<Failure>;
}

/** A finished trial. The JSON report describes further fields. */
export interface Trial {
  /** `suite::case@arm#1`. */
  id: string;
  /** Name of the suite. */
  suite: string;
  /** Id of the case. */
  case: string;
  /** Agent, model and variant. */
  arm: string;
  /** Name of the agent. */
  agent: string;
  /** Name of the model. */
  model?: string;
  /** Variant, such as `with_skill`. */
  variant?: string;
  /** Number of the repetition, from 1. */
  repetition: number;
  /** Outcome. */
  outcome: "passed" | "failed" | "undecided" | "broken" | "stale" | "skipped" | "cancelled";
  /** True if it passed only after another attempt failed. */
  flaky: boolean;
  /** Quarantine of the case; absent if there is none. */
  quarantine?: Record<string, unknown>;
  /** Component at fault, if the trial is broken or undecided. */
  fault?: string;
  /** Reason in one line; absent for a pass. */
  because?: string;
  /** Result of each assertion. */
  findings: Array<Finding>;
  /** Last answer of the agent. */
  answer?: string;
  /** Whole last result of the agent, if it is more than text. */
  result?: unknown;
  /** All tool calls. */
  tool_calls?: Array<Record<string, unknown>>;
  /** Cost in US dollars, as far as it is known. */
  cost_usd?: number;
  /** Duration in milliseconds. */
  duration_ms: number;
  /** File of the case. */
  file?: string;
  /** Line of the case, from 1. */
  line?: number;
}

/** A trial that would run. */
export interface PlannedTrial {
  /** `suite::case@arm#1`. */
  id: string;
  /** Name of the suite. */
  suite: string;
  /** Id of the case. */
  case: string;
  /** Agent, model and variant. */
  arm: string;
  /** Name of the agent. */
  agent: string;
  /** Name of the model. */
  model: string | null;
  /** Number of the repetition, from 1. */
  repetition: number;
  /** Description of the case. */
  title: string | null;
  /** Tags of the case. */
  tags: Array<string>;
  /** File of the case. */
  file: string;
  /** Line of the case, from 1. */
  line: number;
  /** Reason why it is skipped. */
  skip: string | null;
  /** True if the case is in quarantine. */
  quarantined: boolean;
  /** True if it may cost money: its agent may ask a real model, or a judge or a simulated user is asked. */
  may_cost: boolean;
}

/** Name and version of a program. */
export interface Client {
  name: string;
  version: string;
}

export interface InitializeParams {
  /** Version of the protocol that the client speaks. */
  protocol: 1;
  /** The client. */
  client?: Client;
}

export interface InitializeResult {
  /** Version of the protocol. */
  protocol: 1;
  /** The server. */
  server: Client;
}

/** An agent of the client. */
export interface AgentSettings {
  /** True if it works in a directory, so that every trial needs a sandbox. Default: false; a case with files has one anyway. */
  sandbox?: boolean;
  /** False if its answers cost nothing. Default: true. */
  costs?: boolean;
  /** Set if it sends OpenTelemetry spans, which show what it does. */
  traces?: "otlp";
}

/** An assertion or an operator of the client. */
export interface FunctionSettings {
  /** Time limit of a call in milliseconds. Default: 30000. */
  timeout_ms?: number;
}

/** A suite that the client sends. It is stored in the folder `inline` of the state folder. */
export interface InlineSuite {
  /** Name of the suite: letters, digits, `-`, `_` and `.`. */
  name: string;
  /** Content of the file: a conversation, a scenario or a fixtures file. */
  suite: Record<string, unknown>;
}

/** Options of `trialrun run`, under their names with `_` instead of `-`. */
export interface Options {
  /** Skill to evaluate; if no evaluation is named, run its own `evals/evals.json` */
  skill?: string | number;
  /** Run only cases with this id */
  case?: string | Array<string>;
  /** Run only cases whose id matches this regular expression */
  filter?: string | number;
  /** Run only cases with this text in their id, description, suite, tags or file name */
  test?: string | number;
  /** Run only cases with this tag */
  tag?: string | Array<string>;
  /** Run only cases that did not pass in that run, or did not finish */
  failed_in?: string | number;
  /** Run only cases that did not pass in the last run, or did not finish */
  last_failed?: boolean;
  /** Run only the K-th of N parts of the cases; with `auto` or `auto/N`, the part of this job in a CI service, Slurm or Kubernetes */
  shard?: string | number;
  agent?: string | Array<string>;
  model?: string | Array<string>;
  reasoning_effort?: string | number;
  base_url?: string | number;
  gateway?: string | number;
  trials?: string | number;
  precision?: string | number;
  baseline?: boolean;
  /** Do not run cases without their skill */
  no_baseline?: boolean;
  arms?: string | Array<string>;
  seed?: string | number;
  jobs?: string | number;
  timeout?: string | number;
  retries?: string | number;
  reruns?: string | number;
  retry_on?: string | number;
  stop_grace?: string | number;
  setup_timeout?: string | number;
  max_turns?: string | number;
  max_total_tokens?: string | number;
  max_input_tokens?: string | number;
  max_non_cached_input_tokens?: string | number;
  max_output_tokens?: string | number;
  max_reasoning_tokens?: string | number;
  max_cost?: string | number;
  max_duration?: string | number;
  max_run_cost?: string | number;
  max_run_tokens?: string | number;
  on_budget?: string | number;
  pricing?: string | number;
  judge?: string | number;
  judge_base_url?: string | number;
  judges?: string | number;
  judge_sample?: string | number;
  judge_batch?: boolean;
  judge_cache?: string | number;
  judge_calibration?: string | number;
  judge_min_kappa?: string | number;
  cassette?: string | number;
  cassette_dir?: string | number;
  cassette_delays?: boolean;
  /** Exit with 0 if at least this share of the trials passed at the first attempt, such as 0.8 */
  min_pass_rate?: string | number;
  /** Do not exit with 1 if assertions failed */
  no_fail_on_assertions?: boolean;
  /** Share of its score with which a trial passes, in cases whose score decides, such as 0.8; those of `claude plugin eval`, for example */
  threshold?: string | number;
  /** Condition that each trial must meet in addition to its assertions; `integrity`: no signs of tampering */
  require?: string | Array<string>;
  /** Stop before the run if there is a warning */
  strict?: boolean;
  /** Stop before the run if a test file has an error, also if it would only break its own trials */
  strict_files?: boolean;
  sandbox?: string | number;
  network?: string | number;
  source_repo?: string | number;
  remote?: string | number;
  keep_sandbox?: boolean;
  pre_run_command?: string | Array<string>;
  post_grade_command?: string | Array<string>;
  post_run_command?: string | Array<string>;
  /** Label of the run */
  label?: string | number;
  idle_warn?: string | number;
}

/** What a request is about. */
export interface Selection {
  /** Directory to which paths refer, and in which runs are recorded. Default: that in which the server was started. */
  directory?: string;
  /** Files, directories, skills, or cases as `SUITE::CASE`. Default: all tests of the project, unless there are `suites`. */
  targets?: Array<string>;
  /** Options of the run. */
  options?: Options;
  /** Agents of the client by name. Cases use them by their name, and the option `agent` selects them. */
  agents?: Record<string, AgentSettings>;
  /** Assertions of the client by name: letters, digits and `_`. */
  assertions?: Record<string, FunctionSettings>;
  /** Operators of the client by name, with their `$`. */
  operators?: Record<string, FunctionSettings>;
  /** Further suites. */
  suites?: Array<InlineSuite>;
}

export interface CheckResult {
  /** True if `run` would run. */
  valid: boolean;
  /** Number of cases. */
  cases: number;
  /** Number of trials. */
  trials: number;
  /** Number of errors. */
  errors: number;
  /** Number of warnings. */
  warnings: number;
  /** Assertions in natural language, with how each is decided. */
  claims: Array<Record<string, unknown>>;
  /** All problems. */
  problems: Array<Problem>;
  /** The problems as text, with the lines of the files. */
  text: string;
}

export interface ListResult {
  /** Planned trials. */
  trials: Array<PlannedTrial>;
  /** All problems. */
  problems: Array<Problem>;
  /** The problems as text. */
  text: string;
}

export interface PlanResult {
  /** The estimate, as in `trialrun plan --json`. */
  plan: Record<string, unknown>;
  /** Budget of the run in US dollars. */
  max_run_cost_usd: number | null;
  /** The estimate as text. */
  text: string;
}

export interface RunParams extends Selection {
  /** `trials`: only the beginnings and ends of the run and its trials. Default: `all`. */
  events?: "all" | "trials";
}

export interface RunResult {
  /** Id of the run. */
  run: string;
  /** Exit code that `trialrun run` would have. */
  exit_code: number;
  /** Counts, as in the JSON report. */
  summary: Record<string, unknown>;
  /** Reason why the run was stopped early. */
  stopped_by: string | null;
  /** Hash of the recorded run. */
  hash: string | null;
  /** Warnings, and errors that broke single cases. */
  problems: Array<Problem>;
  /** The problems as text. */
  problems_text: string;
  /** How the run differs from what the settings say. */
  notes: Array<string>;
  /** Sandboxes that could not be removed. */
  left_over: Array<string>;
  /** The run as the terminal shows it. */
  text: string;
}

export interface CancelParams {
  /** Id of the request. */
  id: string | number;
}

export interface CancelResult {
  /** True if that run is in progress. */
  found: boolean;
}

export interface ShowParams {
  /** Id or case of a trial of the last run, or a prefix of either; `RUN/TRIAL` selects another run. */
  trial: string;
  /** Directory in which the run was recorded. */
  directory?: string;
}

export interface ShowResult {
  /** The trial as text. */
  text: string;
  /** The trial, as in `trialrun show --json`. */
  trial: Record<string, unknown>;
}

export interface CompareParams {
  /** Earlier run. Default: `previous`. */
  before?: string;
  /** Later run. Default: `latest`. */
  after?: string;
  /** Directory in which the runs were recorded. */
  directory?: string;
}

export interface CompareResult {
  /** The comparison as text. */
  text: string;
  /** The comparison, as in `trialrun compare --json`. */
  comparison: Record<string, unknown>;
  /** Exit code of `trialrun compare`: 1 for a regression, 3 if there is no answer. */
  exit_code: number;
}

export interface ExpectParams {
  /** Value to match. */
  actual: unknown;
  /** Expectation. Templates are not filled in. */
  expected: unknown;
  /** `true`, `object`, `array` or `diff`, or a list of these: kinds of values that must not contain more than the expected parts. */
  strict?: unknown;
  /** How to compare texts, as in fixtures files. */
  diff?: unknown;
  /** Operators of the client by name, with their `$`. */
  operators?: Record<string, FunctionSettings>;
}

export interface ExpectResult {
  /** Null if it cannot be decided. */
  passed: boolean | null;
  /** Score, at most 1. */
  score: number;
  /** Places that do not match. */
  failures: Array<Failure>;
  /** The failures as text. */
  text: string;
  /** Warnings about the expectation. */
  problems: Array<Problem>;
}

/** An event, as in the report `jsonl`. */
export interface Event {
  /** Version of events. */
  v: number;
  /** Ascending number, from 1. */
  seq: number;
  /** Time. */
  at: string;
  /** Id of the run. */
  run: string;
  /** Id of the trial. */
  trial?: string;
  /** Number of the attempt, from 1. */
  attempt?: number;
  /** The event, with its `type`, such as `trial_finished`. */
  event: Record<string, unknown>;
}

export interface EventParams {
  /** Id of the request that started the run. */
  run: string | number;
  /** The event. */
  event: Event;
  /** A trial that has finished and did not pass, as the terminal shows it. */
  text?: string;
}

/** A message of the conversation. */
export interface Turn {
  /** The sender. */
  role: "user" | "assistant";
  /** The text. */
  content: string | null;
}

/** Where an agent with `traces` sends its spans, before it answers. */
export interface TraceTarget {
  /** Base address for an exporter of OTLP over HTTP. Spans that are sent there belong to the conversation. */
  endpoint: string;
  /** W3C `traceparent` of the message, which its spans continue. */
  traceparent: string;
}

/** A message to an agent. */
export interface AgentMessage {
  /** Id of the request that started the run. */
  run: string | number;
  /** Name of the agent. */
  agent: string;
  /** Id of the trial. */
  trial: string;
  /** Id of the conversation, new for each trial. */
  conversation_id: string;
  /** Message of the user. */
  message: string;
  /** Earlier messages of both sides. */
  history: Array<Turn>;
  /** Working directory in the sandbox; null if the trial has no sandbox. */
  directory: string | null;
  /** Time limit of the trial in milliseconds. */
  timeout_ms: number;
  traces?: TraceTarget;
  /** Value from which the message was rendered. */
  input?: unknown;
  /** Script or prompt that the case names. */
  script?: string;
  /** Tools that the case provides. */
  tools?: Array<unknown>;
  /** Variables of the case. */
  vars?: Record<string, unknown>;
  /** Persona of the user. */
  persona?: Record<string, unknown>;
  /** Options of the case. */
  options?: Record<string, unknown>;
}

/** A tool call of an agent. */
export interface ToolCall {
  /** Name of the tool. */
  name: string;
  /** Arguments. */
  arguments?: unknown;
  /** Result, if it is known. */
  result?: unknown;
}

/** Tokens and cost of an answer. */
export interface Usage {
  /** Input tokens. */
  input?: number;
  /** Output tokens. */
  output?: number;
  /** Input tokens that were read from a cache. */
  cache_read?: number;
  /** Input tokens that were written to a cache. */
  cache_write?: number;
  /** Output tokens for reasoning. */
  reasoning?: number;
  /** Cost in US dollars. */
  cost_usd?: number;
}

/** An answer with more than text. Other keys are kept, and `expect` can check them. */
export interface Answer {
  /** Text of the answer. */
  text?: string;
  /** All tool calls; an empty list says that there were none. */
  tool_calls?: Array<ToolCall>;
  /** Tokens and cost. */
  usage?: Usage;
  /** Reason for giving up. */
  error?: string;
}

/** The text, or a map. */
export type AgentAnswer = string | Answer;

/** A trial that an assertion judges, or a reply of it. */
export interface AssertionCheck {
  /** Id of the request that started the run. */
  run: string | number;
  /** Name of the assertion. */
  assertion: string;
  /** Value after the name of the assertion, or its fields. */
  arguments: unknown;
  /** Last answer of the agent; null if there is none. */
  answer: string | null;
  /** Whole result of the agent, as `expect` sees it: `output`, `messages`, `tools`, `state`, `usage` and its own keys. */
  result: unknown;
  /** Working directory of the agent; null if the trial has no sandbox. */
  directory: string | null;
}

/** What an assertion says about a trial. */
export interface Verdict {
  /** True if it holds; null if it cannot be decided. */
  passed: boolean | null;
  /** Score from 0 to 1. Default: 1 if it holds, otherwise 0. */
  score?: number;
  /** Reason in one line. */
  reason?: string;
  /** Expected value. */
  expected?: unknown;
  /** Actual value. */
  actual?: unknown;
  /** Further details, one line each. */
  evidence?: Array<string>;
}

/** True or false, or a map. */
export type AssertionAnswer = boolean | Verdict;

/** Values that an operator compares. */
export interface OperatorValues {
  /** Id of the request: a run, or `expect`. */
  run: string | number;
  /** Name of the operator, with its `$`. */
  operator: string;
  /** Actual value; absent if there is none. */
  actual?: unknown;
  /** Value after the name of the operator. */
  expected?: unknown;
  /** Other keys next to `$value`, if the value is written with that key. */
  options?: unknown;
}

/** True or false, a score, a message that says why it does not match, or a map as that of a custom operator. */
export type OperatorAnswer = boolean | number | string | Record<string, unknown>;

/** Methods, with their parameters and results. */
export interface Methods {
  /** Starts the connection. It must be the first request. */
  "initialize": { params: InitializeParams; result: InitializeResult };
  /** Reads and compiles tests and reports every problem, without running anything. */
  "check": { params: Selection; result: CheckResult };
  /** Lists the trials that `run` would run. */
  "list": { params: Selection; result: ListResult };
  /** Estimates what a run can show, how long it takes and what it costs. */
  "plan": { params: Selection; result: PlanResult };
  /** Runs tests and records the run. `event` notifications arrive before the result. */
  "run": { params: RunParams; result: RunResult };
  /** Stops the run that the request with this id started, like Ctrl-C; a second time kills its agents. */
  "cancel": { params: CancelParams; result: CancelResult };
  /** Shows a recorded trial. */
  "show": { params: ShowParams; result: ShowResult };
  /** Compares two recorded runs. */
  "compare": { params: CompareParams; result: CompareResult };
  /** Matches a value with the `$operator` engine. */
  "expect": { params: ExpectParams; result: ExpectResult };
  /** An event of a run, after it was recorded. */
  "event": { params: EventParams; result: void };
  /** Sends a message to an agent of the client and waits for its answer. */
  "agent/send": { params: AgentMessage; result: AgentAnswer };
  /** Lets an assertion of the client judge a trial. */
  "assertion/check": { params: AssertionCheck; result: AssertionAnswer };
  /** Lets an operator of the client compare values. */
  "operator/compare": { params: OperatorValues; result: OperatorAnswer };
  /** The answer to the callback with this id is no longer expected. */
  "cancelCallback": { params: CancelParams; result: void };
}
