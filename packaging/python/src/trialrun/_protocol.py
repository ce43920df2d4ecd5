"""Types of the messages of ``trialrun rpc``. Generated from its schema (``trialrun schema rpc``)."""

from typing import Any, Dict, List, Literal, TypedDict, Union


class Excerpt(TypedDict):
    """A place in a file."""

    file: str
    """Path as the user would write it."""
    line: int
    """Line, from 1."""
    column: int
    """Column, from 1."""
    text: str
    """The whole line."""


class Problem(TypedDict):
    """A problem in the user's files."""

    severity: Literal["warning", "error"]
    """An error prevents the run."""
    message: str
    """Description in one line."""
    source: Union[Excerpt, None]
    """Location in a file."""
    label: Union[str, None]
    """Label next to the underlined text."""
    help: List[str]
    """Ways to fix it."""


class _Failure(TypedDict):
    key: str
    """Path of the place; empty for the whole value."""
    message: str
    """Description in one line."""
    critical: bool
    """True if it makes the whole assertion fail."""


class Failure(_Failure, total=False):
    """A place that does not match an expectation."""

    expected: Any
    """Expected value."""
    actual: Any
    """Actual value; absent if there is none."""
    source: Excerpt
    """Location in the user's file."""


class _Finding(TypedDict):
    id: str
    """Id of the assertion."""
    type: str
    """Type of the assertion, such as `tool_called`."""
    status: Literal["met", "unmet", "undecided"]
    """Result."""
    because: str
    """Reason in one line."""


class Finding(_Finding, total=False):
    """Result of an assertion."""

    title: str
    """Display name."""
    score: float
    """Score from 0 to 1; absent if undecided."""
    source: Excerpt
    """Location in the user's file; absent for implicit assertions."""
    failures: List[Failure]
    """Places that do not match."""


class _Trial(TypedDict):
    id: str
    """`suite::case@arm#1`."""
    suite: str
    """Name of the suite."""
    case: str
    """Id of the case."""
    arm: str
    """Agent, model and variant."""
    agent: str
    """Name of the agent."""
    repetition: int
    """Number of the repetition, from 1."""
    outcome: Literal["passed", "failed", "undecided", "broken", "stale", "skipped", "cancelled"]
    """Outcome."""
    flaky: bool
    """True if it passed only after another attempt failed."""
    findings: List[Finding]
    """Result of each assertion."""
    duration_ms: int
    """Duration in milliseconds."""


class Trial(_Trial, total=False):
    """A finished trial. The JSON report describes further fields."""

    model: str
    """Name of the model."""
    variant: str
    """Variant, such as `with_skill`."""
    quarantine: Dict[str, Any]
    """Quarantine of the case; absent if there is none."""
    fault: str
    """Component at fault, if the trial is broken or undecided."""
    because: str
    """Reason in one line; absent for a pass."""
    answer: str
    """Last answer of the agent."""
    result: Any
    """Whole last result of the agent, if it is more than text."""
    tool_calls: List[Dict[str, Any]]
    """All tool calls."""
    cost_usd: float
    """Cost in US dollars, as far as it is known."""
    file: str
    """File of the case."""
    line: int
    """Line of the case, from 1."""


class PlannedTrial(TypedDict):
    """A trial that would run."""

    id: str
    """`suite::case@arm#1`."""
    suite: str
    """Name of the suite."""
    case: str
    """Id of the case."""
    arm: str
    """Agent, model and variant."""
    agent: str
    """Name of the agent."""
    model: Union[str, None]
    """Name of the model."""
    repetition: int
    """Number of the repetition, from 1."""
    title: Union[str, None]
    """Description of the case."""
    tags: List[str]
    """Tags of the case."""
    file: str
    """File of the case."""
    line: int
    """Line of the case, from 1."""
    skip: Union[str, None]
    """Reason why it is skipped."""
    quarantined: bool
    """True if the case is in quarantine."""
    may_cost: bool
    """True if it may cost money: its agent may ask a real model, or a judge or a simulated user is asked."""


class Client(TypedDict):
    """Name and version of a program."""

    name: str
    version: str


class _InitializeParams(TypedDict):
    protocol: Literal[1]
    """Version of the protocol that the client speaks."""


class InitializeParams(_InitializeParams, total=False):
    client: Client
    """The client."""


class InitializeResult(TypedDict):
    protocol: Literal[1]
    """Version of the protocol."""
    server: Client
    """The server."""


class AgentSettings(TypedDict, total=False):
    """An agent of the client."""

    sandbox: bool
    """True if it works in a directory, so that every trial needs a sandbox. Default: false; a case with files has one anyway."""
    costs: bool
    """False if its answers cost nothing. Default: true."""
    traces: Literal["otlp"]
    """Set if it sends OpenTelemetry spans, which show what it does."""


class FunctionSettings(TypedDict, total=False):
    """An assertion or an operator of the client."""

    timeout_ms: int
    """Time limit of a call in milliseconds. Default: 30000."""


class InlineSuite(TypedDict):
    """A suite that the client sends. It is stored in the folder `inline` of the state folder."""

    name: str
    """Name of the suite: letters, digits, `-`, `_` and `.`."""
    suite: Dict[str, Any]
    """Content of the file: a conversation, a scenario or a fixtures file."""


class Options(TypedDict, total=False):
    """Options of `trialrun run`, under their names with `_` instead of `-`."""

    skill: Union[str, float]
    """Skill to evaluate; if no evaluation is named, run its own `evals/evals.json`"""
    case: Union[str, List[str]]
    """Run only cases with this id"""
    filter: Union[str, float]
    """Run only cases whose id matches this regular expression"""
    test: Union[str, float]
    """Run only cases with this text in their id, description, suite, tags or file name"""
    tag: Union[str, List[str]]
    """Run only cases with this tag"""
    failed_in: Union[str, float]
    """Run only cases that did not pass in that run, or did not finish"""
    last_failed: bool
    """Run only cases that did not pass in the last run, or did not finish"""
    shard: Union[str, float]
    """Run only the K-th of N parts of the cases; with `auto` or `auto/N`, the part of this job in a CI service, Slurm or Kubernetes"""
    agent: Union[str, List[str]]
    model: Union[str, List[str]]
    reasoning_effort: Union[str, float]
    base_url: Union[str, float]
    gateway: Union[str, float]
    trials: Union[str, float]
    precision: Union[str, float]
    baseline: bool
    no_baseline: bool
    """Do not run cases without their skill"""
    arms: Union[str, List[str]]
    seed: Union[str, float]
    jobs: Union[str, float]
    timeout: Union[str, float]
    retries: Union[str, float]
    reruns: Union[str, float]
    retry_on: Union[str, float]
    stop_grace: Union[str, float]
    setup_timeout: Union[str, float]
    max_turns: Union[str, float]
    max_total_tokens: Union[str, float]
    max_input_tokens: Union[str, float]
    max_non_cached_input_tokens: Union[str, float]
    max_output_tokens: Union[str, float]
    max_reasoning_tokens: Union[str, float]
    max_cost: Union[str, float]
    max_duration: Union[str, float]
    max_run_cost: Union[str, float]
    max_run_tokens: Union[str, float]
    on_budget: Union[str, float]
    pricing: Union[str, float]
    judge: Union[str, float]
    judge_base_url: Union[str, float]
    judges: Union[str, float]
    judge_sample: Union[str, float]
    judge_batch: bool
    judge_cache: Union[str, float]
    judge_calibration: Union[str, float]
    judge_min_kappa: Union[str, float]
    cassette: Union[str, float]
    cassette_dir: Union[str, float]
    cassette_delays: bool
    min_pass_rate: Union[str, float]
    """Exit with 0 if at least this share of the trials passed at the first attempt, such as 0.8"""
    no_fail_on_assertions: bool
    """Do not exit with 1 if assertions failed"""
    threshold: Union[str, float]
    """Share of its score with which a trial passes, in cases whose score decides, such as 0.8; those of `claude plugin eval`, for example"""
    require: Union[str, List[str]]
    """Condition that each trial must meet in addition to its assertions; `integrity`: no signs of tampering"""
    strict: bool
    """Stop before the run if there is a warning"""
    strict_files: bool
    """Stop before the run if a test file has an error, also if it would only break its own trials"""
    sandbox: Union[str, float]
    network: Union[str, float]
    source_repo: Union[str, float]
    remote: Union[str, float]
    keep_sandbox: bool
    pre_run_command: Union[str, List[str]]
    post_grade_command: Union[str, List[str]]
    post_run_command: Union[str, List[str]]
    label: Union[str, float]
    """Label of the run"""
    idle_warn: Union[str, float]


class Selection(TypedDict, total=False):
    """What a request is about."""

    directory: str
    """Directory to which paths refer, and in which runs are recorded. Default: that in which the server was started."""
    targets: List[str]
    """Files, directories, skills, or cases as `SUITE::CASE`. Default: all tests of the project, unless there are `suites`."""
    options: Options
    """Options of the run."""
    agents: Dict[str, AgentSettings]
    """Agents of the client by name. Cases use them by their name, and the option `agent` selects them."""
    assertions: Dict[str, FunctionSettings]
    """Assertions of the client by name: letters, digits and `_`."""
    operators: Dict[str, FunctionSettings]
    """Operators of the client by name, with their `$`."""
    suites: List[InlineSuite]
    """Further suites."""


class CheckResult(TypedDict):
    valid: bool
    """True if `run` would run."""
    cases: int
    """Number of cases."""
    trials: int
    """Number of trials."""
    errors: int
    """Number of errors."""
    warnings: int
    """Number of warnings."""
    claims: List[Dict[str, Any]]
    """Assertions in natural language, with how each is decided."""
    problems: List[Problem]
    """All problems."""
    text: str
    """The problems as text, with the lines of the files."""


class ListResult(TypedDict):
    trials: List[PlannedTrial]
    """Planned trials."""
    problems: List[Problem]
    """All problems."""
    text: str
    """The problems as text."""


class PlanResult(TypedDict):
    plan: Dict[str, Any]
    """The estimate, as in `trialrun plan --json`."""
    max_run_cost_usd: Union[float, None]
    """Budget of the run in US dollars."""
    text: str
    """The estimate as text."""


class RunParams(Selection, total=False):
    events: Literal["all", "trials"]
    """`trials`: only the beginnings and ends of the run and its trials. Default: `all`."""


class RunResult(TypedDict):
    run: str
    """Id of the run."""
    exit_code: int
    """Exit code that `trialrun run` would have."""
    summary: Dict[str, Any]
    """Counts, as in the JSON report."""
    stopped_by: Union[str, None]
    """Reason why the run was stopped early."""
    hash: Union[str, None]
    """Hash of the recorded run."""
    problems: List[Problem]
    """Warnings, and errors that broke single cases."""
    problems_text: str
    """The problems as text."""
    notes: List[str]
    """How the run differs from what the settings say."""
    left_over: List[str]
    """Sandboxes that could not be removed."""
    text: str
    """The run as the terminal shows it."""


class CancelParams(TypedDict):
    id: Union[str, int]
    """Id of the request."""


class CancelResult(TypedDict):
    found: bool
    """True if that run is in progress."""


class _ShowParams(TypedDict):
    trial: str
    """Id or case of a trial of the last run, or a prefix of either; `RUN/TRIAL` selects another run."""


class ShowParams(_ShowParams, total=False):
    directory: str
    """Directory in which the run was recorded."""


class ShowResult(TypedDict):
    text: str
    """The trial as text."""
    trial: Dict[str, Any]
    """The trial, as in `trialrun show --json`."""


class CompareParams(TypedDict, total=False):
    before: str
    """Earlier run. Default: `previous`."""
    after: str
    """Later run. Default: `latest`."""
    directory: str
    """Directory in which the runs were recorded."""


class CompareResult(TypedDict):
    text: str
    """The comparison as text."""
    comparison: Dict[str, Any]
    """The comparison, as in `trialrun compare --json`."""
    exit_code: int
    """Exit code of `trialrun compare`: 1 for a regression, 3 if there is no answer."""


class _ExpectParams(TypedDict):
    actual: Any
    """Value to match."""
    expected: Any
    """Expectation. Templates are not filled in."""


class ExpectParams(_ExpectParams, total=False):
    strict: Any
    """`true`, `object`, `array` or `diff`, or a list of these: kinds of values that must not contain more than the expected parts."""
    diff: Any
    """How to compare texts, as in fixtures files."""
    operators: Dict[str, FunctionSettings]
    """Operators of the client by name, with their `$`."""


class ExpectResult(TypedDict):
    passed: Union[bool, None]
    """Null if it cannot be decided."""
    score: float
    """Score, at most 1."""
    failures: List[Failure]
    """Places that do not match."""
    text: str
    """The failures as text."""
    problems: List[Problem]
    """Warnings about the expectation."""


class _Event(TypedDict):
    v: int
    """Version of events."""
    seq: int
    """Ascending number, from 1."""
    at: str
    """Time."""
    run: str
    """Id of the run."""
    event: Dict[str, Any]
    """The event, with its `type`, such as `trial_finished`."""


class Event(_Event, total=False):
    """An event, as in the report `jsonl`."""

    trial: str
    """Id of the trial."""
    attempt: int
    """Number of the attempt, from 1."""


class _EventParams(TypedDict):
    run: Union[str, int]
    """Id of the request that started the run."""
    event: Event
    """The event."""


class EventParams(_EventParams, total=False):
    text: str
    """A trial that has finished and did not pass, as the terminal shows it."""


class Turn(TypedDict):
    """A message of the conversation."""

    role: Literal["user", "assistant"]
    """The sender."""
    content: Union[str, None]
    """The text."""


class TraceTarget(TypedDict):
    """Where an agent with `traces` sends its spans, before it answers."""

    endpoint: str
    """Base address for an exporter of OTLP over HTTP. Spans that are sent there belong to the conversation."""
    traceparent: str
    """W3C `traceparent` of the message, which its spans continue."""


class _AgentMessage(TypedDict):
    run: Union[str, int]
    """Id of the request that started the run."""
    agent: str
    """Name of the agent."""
    trial: str
    """Id of the trial."""
    conversation_id: str
    """Id of the conversation, new for each trial."""
    message: str
    """Message of the user."""
    history: List[Turn]
    """Earlier messages of both sides."""
    directory: Union[str, None]
    """Working directory in the sandbox; null if the trial has no sandbox."""
    timeout_ms: int
    """Time limit of the trial in milliseconds."""


class AgentMessage(_AgentMessage, total=False):
    """A message to an agent."""

    traces: TraceTarget
    input: Any
    """Value from which the message was rendered."""
    script: str
    """Script or prompt that the case names."""
    tools: List[Any]
    """Tools that the case provides."""
    vars: Dict[str, Any]
    """Variables of the case."""
    persona: Dict[str, Any]
    """Persona of the user."""
    options: Dict[str, Any]
    """Options of the case."""


class _ToolCall(TypedDict):
    name: str
    """Name of the tool."""


class ToolCall(_ToolCall, total=False):
    """A tool call of an agent."""

    arguments: Any
    """Arguments."""
    result: Any
    """Result, if it is known."""


class Usage(TypedDict, total=False):
    """Tokens and cost of an answer."""

    input: int
    """Input tokens."""
    output: int
    """Output tokens."""
    cache_read: int
    """Input tokens that were read from a cache."""
    cache_write: int
    """Input tokens that were written to a cache."""
    reasoning: int
    """Output tokens for reasoning."""
    cost_usd: float
    """Cost in US dollars."""


class Answer(TypedDict, total=False):
    """An answer with more than text. Other keys are kept, and `expect` can check them."""

    text: str
    """Text of the answer."""
    tool_calls: List[ToolCall]
    """All tool calls; an empty list says that there were none."""
    usage: Usage
    """Tokens and cost."""
    error: str
    """Reason for giving up."""


AgentAnswer = Union[str, Answer]


class AssertionCheck(TypedDict):
    """A trial that an assertion judges, or a reply of it."""

    run: Union[str, int]
    """Id of the request that started the run."""
    assertion: str
    """Name of the assertion."""
    arguments: Any
    """Value after the name of the assertion, or its fields."""
    answer: Union[str, None]
    """Last answer of the agent; null if there is none."""
    result: Any
    """Whole result of the agent, as `expect` sees it: `output`, `messages`, `tools`, `state`, `usage` and its own keys."""
    directory: Union[str, None]
    """Working directory of the agent; null if the trial has no sandbox."""


class _Verdict(TypedDict):
    passed: Union[bool, None]
    """True if it holds; null if it cannot be decided."""


class Verdict(_Verdict, total=False):
    """What an assertion says about a trial."""

    score: float
    """Score from 0 to 1. Default: 1 if it holds, otherwise 0."""
    reason: str
    """Reason in one line."""
    expected: Any
    """Expected value."""
    actual: Any
    """Actual value."""
    evidence: List[str]
    """Further details, one line each."""


AssertionAnswer = Union[bool, Verdict]


class _OperatorValues(TypedDict):
    run: Union[str, int]
    """Id of the request: a run, or `expect`."""
    operator: str
    """Name of the operator, with its `$`."""


class OperatorValues(_OperatorValues, total=False):
    """Values that an operator compares."""

    actual: Any
    """Actual value; absent if there is none."""
    expected: Any
    """Value after the name of the operator."""
    options: Any
    """Other keys next to `$value`, if the value is written with that key."""


OperatorAnswer = Union[bool, float, str, Dict[str, Any]]


OPTIONS = frozenset([
    "skill",
    "case",
    "filter",
    "test",
    "tag",
    "failed_in",
    "last_failed",
    "shard",
    "agent",
    "model",
    "reasoning_effort",
    "base_url",
    "gateway",
    "trials",
    "precision",
    "baseline",
    "no_baseline",
    "arms",
    "seed",
    "jobs",
    "timeout",
    "retries",
    "reruns",
    "retry_on",
    "stop_grace",
    "setup_timeout",
    "max_turns",
    "max_total_tokens",
    "max_input_tokens",
    "max_non_cached_input_tokens",
    "max_output_tokens",
    "max_reasoning_tokens",
    "max_cost",
    "max_duration",
    "max_run_cost",
    "max_run_tokens",
    "on_budget",
    "pricing",
    "judge",
    "judge_base_url",
    "judges",
    "judge_sample",
    "judge_batch",
    "judge_cache",
    "judge_calibration",
    "judge_min_kappa",
    "cassette",
    "cassette_dir",
    "cassette_delays",
    "min_pass_rate",
    "no_fail_on_assertions",
    "threshold",
    "require",
    "strict",
    "strict_files",
    "sandbox",
    "network",
    "source_repo",
    "remote",
    "keep_sandbox",
    "pre_run_command",
    "post_grade_command",
    "post_run_command",
    "label",
    "idle_warn",
])

PROTOCOL = 1
