// What tests of trialrun are written with. Made by `trialrun schema types`.

declare module "trialrun" {
  /** Somebody who talks to the agent. */
  export interface PersonaFields {
    /** What the person is to the agent, such as `customer`. */
    readonly role: string;
    /** What the person is called. */
    readonly name?: string;
    /** How the person speaks, such as `frustrated`. */
    readonly tone?: string;
    /** What happened before. */
    readonly backstory?: string;
    /** What else is known. */
    readonly context?: Record<string, unknown>;
  }

  /** Something a persona says. */
  export interface Message {
    readonly text: string;
    readonly persona?: PersonaFields;
  }

  export interface Persona extends PersonaFields {
    /** A message of this persona, for `agent.send`. */
    says(text: string): Message;
    /** Lets a model play this persona until its goal is reached, or it has nothing more to say. */
    converse(agent: Agent, options: ConverseOptions): Promise<Conversation>;
  }

  export interface ConverseOptions {
    /** What the persona wants. */
    goal: string;
    /** When it has nothing more to say. */
    stopWhen?: string;
    /** The most messages it sends; 10 unless it says otherwise. */
    maxTurns?: number;
    /** The model that plays, as `provider:model`; the project's judge unless it says otherwise. */
    model?: string;
  }

  export interface Conversation {
    /** The agent's replies, in order. */
    readonly replies: readonly AgentResponse[];
    /** The last of them, if there is one. */
    readonly last?: AgentResponse;
    /** Why it came to an end. */
    readonly reason: string;
  }

  /** A call of a tool. */
  export interface ToolCall {
    readonly name: string;
    readonly arguments: any;
    readonly result?: any;
  }

  /** What the agent answered to one message. It cannot be changed. */
  export class AgentResponse {
    /** Tests are handed replies. An adapter may make one of its own. */
    constructor(fields?: {
      text?: string;
      toolCalls?: readonly ToolCall[];
      latencyMs?: number;
      tokenUsage?: TokenUsage;
      raw?: any;
    });
    /** The answer. */
    readonly text: string;
    /** The calls it made for it, in order. */
    readonly toolCalls: readonly ToolCall[];
    /** How long it took, in milliseconds. */
    readonly latencyMs: number;
    /** How long its first word took, where it came in pieces. */
    readonly firstTokenMs?: number;
    /** The tokens it used, if the agent tells. */
    readonly tokenUsage?: TokenUsage;
    /** The body of the answer, if it was more than text. */
    readonly raw?: any;
    /** `true` if the answer contains a text, whatever its case. */
    mentions(text: string): boolean;
  }

  /** Another name of `AgentResponse`. */
  export type Response = AgentResponse;

  export interface TokenUsage {
    readonly input: number;
    readonly output: number;
    readonly total: number;
  }

  /** The agent under test. */
  export interface Agent {
    readonly name: string;
    readonly model?: string;
    /** Says something to the agent, and waits for its reply. */
    send(message: string | Message, options?: Record<string, unknown>): Promise<AgentResponse>;
    /** Runs a shell command where the agent works. */
    run(command: string, options?: { timeout?: number }): Promise<CommandResult>;
    /** The files where the agent works. */
    readonly files: Files;
  }

  export interface CommandResult {
    readonly stdout: string;
    readonly stderr: string;
    readonly exitCode: number;
  }

  /** Paths are relative to the agent's working directory. */
  export interface Files {
    read(path: string): Promise<string>;
    /** The names in a directory, sorted; those of directories end in `/`. */
    list(path?: string): Promise<string[]>;
    exists(path: string): Promise<boolean>;
  }

  /** What an assertion came to. */
  export interface AssertionResult {
    readonly type: string;
    readonly passed: boolean;
    readonly status: "met" | "unmet" | "undecided";
    readonly expected?: string;
    readonly actual?: string;
    /** Why, in one line. */
    readonly reasoning: string;
    readonly latencyMs: number;
    readonly error?: string;
  }

  /** What every assertion may be given beside its own fields. */
  export interface Options {
    /** Its name in reports. */
    id?: string;
    /** What people call it. */
    title?: string;
    /** Its share of the score; 1 unless it says otherwise. */
    weight?: number;
  }

  /** A JSON Schema. */
  export type JsonSchema = boolean | { readonly [keyword: string]: unknown };

  /** A schema that is code, such as one of zod. */
  export type Schema =
    | { safeParse(value: unknown): unknown }
    | { readonly "~standard": { validate(value: unknown): unknown } };

  /**
   * An assertion. About a response if one is given first, else about the whole trial. It never throws, and need not be
   * awaited.
   */
  export interface Claim<Given extends readonly unknown[]> {
    (response: AgentResponse, ...given: Given): Promise<AssertionResult>;
    (...given: Given): Promise<AssertionResult>;
  }

/* fields */
  export interface Assertions {
/* assertions */
    /** A check of your own: it holds if the function gives `true`, or a promise of it. */
    custom(
      name: string,
      check: (response: AgentResponse) => boolean | Promise<boolean>,
      response?: AgentResponse,
    ): Promise<AssertionResult>;
  }

  export interface ScenarioOptions {
    description?: string;
    /** For selection on the command line. */
    tags?: readonly string[];
    /** Milliseconds, or a text such as `30s`. */
    timeout?: number | string;
    /** How often a trial that failed is run again; a pass after that is flaky. */
    reruns?: number;
    /** Another name for `reruns`. */
    retries?: number;
    /** How often it is repeated. */
    trials?: number;
    /** It is not run; a text says why. */
    skip?: boolean | string;
    /** Only scenarios that have this are run of their file. */
    only?: boolean;
    /** What the sandbox holds before the agent starts. */
    fixtures?: Fixtures;
    /**
     * Tools that the agent is to have, each in a module: `./tools.ts#lookup_order`. An assistant's function tools are
     * answered by those of the same name.
     */
    tools?: readonly (string | Record<string, unknown>)[];
  }

  /** What a sandbox holds, as in scenario files. Paths of this machine start at the test's own folder. */
  export interface Fixtures {
    /** Blocks of the nearest `_fixtures.yaml` to start from. */
    extends?: string | readonly string[];
    /** Make the sandbox a git repository with a commit. */
    git_init?: boolean;
    /** The branch to be on after that commit. Not written: `main`. */
    git_branch?: string;
    /** Directories whose contents are copied in first. */
    copy_trees?: readonly { from: string; to?: string }[];
    /** Files of the commit. */
    files_committed?: readonly FixtureFile[];
    /** Files added to the index after it. */
    files_staged?: readonly FixtureFile[];
    /** Files left untracked. */
    files_unstaged?: readonly FixtureFile[];
    /** Shell commands run in the finished sandbox, in order. */
    setup_commands?: readonly string[];
    /** Variables for the setup commands and the agent. */
    env?: Record<string, string>;
  }

  /** A file of a sandbox. */
  export interface FixtureFile {
    /** Where it is, relative to the sandbox and inside of it. */
    path: string;
    /** What is in it. */
    content?: string;
    /** A file to copy, byte for byte. */
    content_from?: string;
  }

  /** What a scenario is handed. */
  export interface ScenarioContext {
    readonly agent: Agent;
    /**
     * More conversations, each opened by its first message: `agents.NAME` talks to the agent that the project configures
     * by this name, else to the scenario's own agent once more.
     */
    readonly agents: Readonly<Record<string, Agent>>;
    readonly assert: Assertions;
    persona(fields: PersonaFields): Persona;
    score(name: string, value: number): void;
    /** The numbers that were recorded. */
    readonly scores: Map<string, number>;
    /** What is known of the agent beforehand: `null` as long as nothing finds it out. */
    readonly profile: any;
  }

  export type ScenarioFunction = (context: ScenarioContext) => unknown;

  /** Another name of `ScenarioFunction`. */
  export type ScenarioFn = ScenarioFunction;

  export interface Scenario {
    readonly name: string;
    readonly tags?: readonly string[];
  }

  /** Names a test. What a module exports is run. */
  export interface ScenarioMaker {
    (name: string, run: ScenarioFunction): Scenario;
    (name: string, options: ScenarioOptions, run: ScenarioFunction): Scenario;
  }

  /** A scenario for each row. `%s`, `%j` and `$key` in the name stand for values of the row, `%#` for its number. */
  export interface ScenarioTable<Values extends unknown[]> {
    (name: string, run: (context: ScenarioContext, ...values: Values) => unknown): Scenario[];
    (name: string, options: ScenarioOptions, run: (context: ScenarioContext, ...values: Values) => unknown): Scenario[];
  }

  export const scenario: ScenarioMaker & {
    /** A scenario that is not run. */
    readonly skip: ScenarioMaker;
    /** Only scenarios made with this are run of their file. */
    readonly only: ScenarioMaker;
    each<Values extends unknown[] | [unknown]>(rows: Iterable<Values>): ScenarioTable<Values>;
    each<Value>(rows: Iterable<Value>): ScenarioTable<[value: Value]>;
  };

  /** What an adapter is told with a message. */
  export interface ConversationContext {
    readonly conversationId: string;
    /** What was said before. */
    readonly history: readonly { readonly role: "user" | "assistant"; readonly content: string }[];
    readonly persona?: PersonaFields;
    /** The `options` of the configuration. */
    readonly options?: any;
    readonly [key: string]: any;
  }

  /** What an adapter answers: text, or an object with one. */
  export interface AdapterAnswer {
    text?: string;
    toolCalls?: readonly { name: string; arguments?: unknown; result?: unknown }[];
    tokenUsage?: { input: number; output: number; total?: number };
    [key: string]: any;
  }

  /** An agent of your own, for the `custom` agent. Only `send` must be there. */
  export interface AgentAdapter {
    connect?(options: any): Promise<void> | void;
    send(
      message: string,
      context?: ConversationContext,
    ): Promise<string | AgentResponse | AdapterAnswer> | string | AgentResponse | AdapterAnswer;
    /** Begins a conversation that knows of no other. */
    reset?(): Promise<void> | void;
    disconnect?(): Promise<void> | void;
  }

  /** One message of a conversation. */
  export interface Turn {
    role: "persona" | "agent";
    message: string;
  }

  /** A message and what came of it, in the JSON report. */
  export interface TurnRecord {
    readonly message: string;
    readonly answer: string | null;
    readonly latency_ms: number | null;
    readonly first_token_ms: number | null;
  }

  /** A trial in the JSON report, as far as tests are concerned: an item of `trials`. */
  export interface RunResult {
    readonly id: string;
    readonly suite: string;
    readonly case: string;
    readonly outcome: "passed" | "failed" | "undecided" | "broken" | "skipped" | "cancelled";
    readonly because: string | null;
    readonly score: number | null;
    readonly findings: readonly any[];
    readonly turns: readonly TurnRecord[];
    readonly duration_ms: number;
    readonly [field: string]: any;
  }

  /** What a model is asked and what it answers. */
  export interface LLMResponse {
    text: string;
    parsed?: any;
    tokenUsage: TokenUsage;
  }

  /** Something that asks a model, for adapters that bring their own. */
  export interface LLMProvider {
    generate(params: {
      messages: { role: "system" | "user" | "assistant"; content: string }[];
      outputSchema?: JsonSchema | Schema;
      temperature?: number;
      maxTokens?: number;
    }): Promise<LLMResponse>;
  }

  /** Somebody who talks to the agent. */
  export function persona(fields: PersonaFields): Persona;

  /** Records whether something holds. */
  export const assert: Assertions;

  /** Records a named number. */
  export function score(name: string, value: number): void;

  /** Waits, in milliseconds. */
  export function sleep(milliseconds: number): Promise<void>;

  export { defineConfig, Config, AgentConfig } from "trialrun/config";
}

declare module "trialrun/config" {
  /** An agent: its `type`, and what that takes. */
  export interface AgentConfig {
    /** Such as `http`, `subprocess`, `custom`. */
    type: string;
    url?: string;
    headers?: Record<string, string>;
    /** The body of a request: text with templates, a value, or what a function makes of the message. */
    bodyTemplate?: string | Record<string, unknown> | ((message: string, context?: any) => unknown);
    /** Where the answer is in a response, or what a function makes of it. */
    responseParser?: string | ((data: any) => unknown);
    /** The program of a `subprocess`, and where it starts. */
    command?: string;
    args?: readonly string[];
    cwd?: string;
    /** The assistant of an `openai-assistant`. */
    assistantId?: string;
    apiKey?: string;
    /** The file of a `custom` agent. */
    module?: string;
    [option: string]: any;
  }

  export interface LlmConfig {
    provider?: string;
    model: string;
    baseUrl?: string;
    apiKey?: string;
    temperature?: number;
  }

  export interface JudgeConfig {
    /** As `provider:model`. */
    model?: string;
    judges?: number;
    baseUrl?: string;
    apiKey?: string;
    temperature?: number;
  }

  export interface SandboxConfig {
    provider?: string;
    fallback?: "local";
    daytona?: {
      apiKey?: string;
      apiUrl?: string;
      target?: string;
      snapshot?: string;
      image?: string;
      language?: string;
      env?: Record<string, string>;
    };
  }

  /** Values may have `${env.NAME}` in them. */
  export interface Config {
    /** The agent of cases that name none. */
    agent?: string | AgentConfig;
    /** Agents by their names. */
    agents?: Record<string, AgentConfig>;
    /** The folder of tests. */
    tests?: string;
    /** The folder of skills. */
    skillsDir?: string;
    /** The folder for recorded runs. */
    state?: string;
    store?: { path?: string };
    defaults?: {
      agent?: string;
      runtime?: string;
      model?: string;
      permissionMode?: "default" | "acceptEdits" | "plan" | "bypassPermissions";
      timeout?: number | string;
      maxTurns?: number;
      trials?: number;
      tokenBudget?: number;
      jobs?: number;
      parallelism?: number;
      retries?: number;
      reruns?: number;
      sandbox?: string;
    };
    eval?: { parallelism?: number; reruns?: number; retries?: number; defaultTimeout?: number | string };
    /** The model that judges and plays users. */
    judge?: string | JudgeConfig;
    llm?: LlmConfig;
    providers?: Record<
      string,
      { concurrency?: number; requestsPerMinute?: number; timeout?: number | string }
    >;
    /** A file with prices of models. */
    pricing?: string;
    sandbox?: string | SandboxConfig;
    report?: { formats?: readonly string[]; outputDir?: string };
    diff?: { regressionThreshold?: number };
    /** What holds for all fixtures files. */
    fixtures?: Record<string, unknown>;
  }

  /** The configuration as it is; an editor knows its keys. */
  export function defineConfig(config: Config): Config;
}

declare module "@fabrik/core" {
  export * from "trialrun";
}

declare module "@fabriklabs/core" {
  export * from "trialrun";
}

declare module "@fabrik/cli" {
  export * from "trialrun/config";
}

declare module "@fabriklabs/cli" {
  export * from "trialrun/config";
}
