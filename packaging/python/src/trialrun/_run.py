"""Runs, checks and compares tests."""

import difflib
import html
import os
from typing import AbstractSet, Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Union, cast

from ._agent import Agent, Function, as_agent
from ._client import Callbacks, Client, TrialrunError
from ._function import Assertion, Check as CheckFunction, Compare, Operator, as_assertion, as_operator
from ._protocol import (
    OPTIONS,
    CheckResult,
    CompareResult,
    Event,
    EventParams,
    Finding,
    InlineSuite,
    ListResult,
    PlannedTrial,
    Problem,
    RunResult,
    ShowResult,
    Trial,
)

AgentLike = Union[str, Agent, Function]
"""An agent: its name, or a function."""


# pytest shows an error in the line of the test, without the lines here.
__tracebackhide__ = True

INVALID_TESTS = -32002
"""Code of errors about tests with problems."""

MAX_TEXTS = 5
"""Maximum number of trials that the text of a failure shows."""


class TrialsFailed(AssertionError):
    """A run did not pass."""

    def __init__(self, run: "Run") -> None:
        self.run = run
        super().__init__(run.failure)


class Run:
    """A finished run. It is true if it passed."""

    def __init__(self, result: RunResult, trials: Sequence[Trial], texts: Mapping[str, str]) -> None:
        self.id = result["run"]
        """Id of the run, which ``trialrun show`` and other commands accept."""
        self.exit_code = result["exit_code"]
        """Exit code that ``trialrun run`` would have."""
        self.summary = result["summary"]
        """Counts, as in the JSON report."""
        self.stopped_by = result["stopped_by"]
        """Reason why the run was stopped early."""
        self.problems: List[Problem] = result["problems"]
        """Warnings, and errors that broke single cases."""
        self.notes = result["notes"]
        """How the run differs from what the settings say."""
        self.hash = result["hash"]
        """Hash of the recorded run."""
        self.text = result["text"]
        """The run as the terminal shows it."""
        self.trials = list(trials)
        """Finished trials, in the order in which they finished."""
        self.problems_text = result["problems_text"]
        """The problems, with the lines of the files."""
        self._texts = dict(texts)

    @property
    def passed(self) -> bool:
        """True if everything passed."""
        return self.exit_code == 0

    @property
    def failure(self) -> str:
        """The trials that did not pass, with their findings; empty if the run passed."""
        if self.passed:
            return ""
        texts = list(self._texts.values())
        parts = [self.problems_text, *texts[:MAX_TEXTS]]
        if len(texts) > MAX_TEXTS:
            parts.append(f"and {len(texts) - MAX_TEXTS} more: trialrun status {self.id} --all")
        if self.stopped_by is not None:
            parts.append(f"the run was stopped: {self.stopped_by}\n")
        text = "\n".join(part.rstrip("\n") for part in parts if part)
        return text or self.text

    def text_of(self, trial: Trial) -> str:
        """Returns a trial that did not pass as the terminal shows it."""
        return self._texts.get(trial["id"], "")

    def raise_for_failure(self) -> "Run":
        """Raises ``TrialsFailed`` unless everything passed."""
        if not self.passed:
            raise TrialsFailed(self)
        return self

    def __bool__(self) -> bool:
        return self.passed

    def __repr__(self) -> str:
        counts: Dict[str, int] = {}
        for trial in self.trials:
            counts[trial["outcome"]] = counts.get(trial["outcome"], 0) + 1
        shown = ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))
        return f"<Run {self.id[:8]}: {shown or 'no trials'}>"

    def _repr_html_(self) -> str:
        """Shows the run in a notebook."""
        return _table(self)


class Check:
    """Result of checking tests. It is true if they can run."""

    def __init__(self, result: CheckResult) -> None:
        self.valid = result["valid"]
        """True if the tests can run."""
        self.cases = result["cases"]
        """Number of cases."""
        self.trials = result["trials"]
        """Number of trials."""
        self.problems: List[Problem] = result["problems"]
        """All problems."""
        self.text = result["text"]
        """The problems, with the lines of the files."""

    def __bool__(self) -> bool:
        return self.valid

    def __repr__(self) -> str:
        return f"<Check: {self.cases} cases, {len(self.problems)} problems>"


class Comparison:
    """Comparison of two runs."""

    def __init__(self, result: CompareResult) -> None:
        self.text = result["text"]
        """The comparison as text."""
        self.json = result["comparison"]
        """The comparison, as in ``trialrun compare --json``."""
        self.exit_code = result["exit_code"]
        """1 for a regression, 3 if there is no answer, otherwise 0."""

    def __repr__(self) -> str:
        return f"<Comparison: exit code {self.exit_code}>"


def refuse_unknown(given: Mapping[str, Any], known: AbstractSet[str]) -> None:
    """Raises an error if there is a keyword that is not known."""
    unknown = sorted(set(given) - OPTIONS)
    if unknown:
        near = difflib.get_close_matches(unknown[0], sorted(known), 1)
        hint = f" (did you mean `{near[0]}`?)" if near else ""
        raise TypeError(f"`{unknown[0]}` is not an option of a run{hint}")


class Selection:
    """Parameters of a request about tests."""

    def __init__(
        self,
        targets: Iterable[Union[str, "os.PathLike[str]"]],
        agent: Union[AgentLike, Sequence[AgentLike], None],
        agents: Iterable[Union[Agent, Function]],
        suites: Sequence[InlineSuite],
        options: Mapping[str, Any],
        assertions: Iterable[Union[Assertion, CheckFunction]] = (),
        operators: Iterable[Union[Operator, Compare]] = (),
    ) -> None:
        refuse_unknown(options, OPTIONS)
        self.functions: List[Union[Assertion, Operator]] = [as_assertion(given) for given in assertions]
        self.functions.extend(as_operator(given) for given in operators)
        self.agents: Dict[str, Agent] = {}
        for given in agents:
            self._add(as_agent(given))
        chosen = dict(options)
        if agent is not None:
            listed = [*cast(Sequence[AgentLike], agent)] if isinstance(agent, (list, tuple)) else [cast(AgentLike, agent)]
            if not listed:
                raise TypeError("`agent` is an empty list")
            for one in listed:
                if not isinstance(one, str) and not callable(one):
                    kind = type(one).__name__
                    raise TypeError(f"`agent` must be a function or the name of a configured agent, not {kind}")
            chosen["agent"] = [one if isinstance(one, str) else self._add(as_agent(one)) for one in listed]
        self.params: Dict[str, Any] = {
            "targets": [os.fspath(target) for target in targets],
            "options": {name: value for name, value in chosen.items() if value is not None},
            "suites": list(suites),
        }

    def _add(self, agent: Agent) -> str:
        if self.agents.setdefault(agent.name, agent) is not agent:
            raise ValueError(f"two agents are called `{agent.name}`; name one with `@trialrun.agent(name=…)`")
        return agent.name

    @property
    def with_agents(self) -> Dict[str, Any]:
        """Parameters of a request that does not run anything."""
        return {**self.params, **Callbacks(self.agents, self.functions).settings}


class Recorder:
    """Collects the finished trials of a run from its events."""

    def __init__(self, on_event: Optional[Callable[[Event], None]] = None) -> None:
        self.trials: List[Trial] = []
        self.texts: Dict[str, str] = {}
        self.error: Optional[BaseException] = None
        self._on_event = on_event

    def __call__(self, params: EventParams) -> None:
        event = params["event"]["event"]
        if event["type"] == "trial_finished":
            finished = cast(Trial, {name: value for name, value in event.items() if name != "type"})
            self.trials.append(finished)
            if "text" in params:
                self.texts[finished["id"]] = params["text"]
        if self._on_event is not None and self.error is None:
            try:
                self._on_event(params["event"])
            except BaseException as error:  # Reported when the run has ended.
                self.error = error


def run(
    *targets: Union[str, "os.PathLike[str]"],
    agent: Union[AgentLike, Sequence[AgentLike], None] = None,
    agents: Iterable[Union[Agent, Function]] = (),
    assertions: Iterable[Union[Assertion, CheckFunction]] = (),
    operators: Iterable[Union[Operator, Compare]] = (),
    suites: Sequence[InlineSuite] = (),
    directory: Union[str, "os.PathLike[str]", None] = None,
    on_event: Optional[Callable[[Event], None]] = None,
    program: Optional[str] = None,
    **options: Any,
) -> Run:
    """Runs tests and records the run.

    ``targets`` are files, directories, skills, or cases as ``SUITE::CASE``. ``agent`` runs all cases: the name of an
    agent, a function, or a list of them. ``agents``, ``assertions`` and ``operators`` are functions that cases use by
    their names. ``options`` are those of ``trialrun run`` with ``_``, such as ``trials=5`` or ``max_cost=0.5``. ``on_event`` gets each event, in another
    thread.
    """
    selection = Selection(targets, agent, agents, suites, options, assertions, operators)
    recorder = Recorder(on_event)
    params = {**selection.params, "events": "trials" if on_event is None else "all"}
    with Client(program, _directory(directory)) as client:
        result = cast(RunResult, client.run(params, selection.agents, recorder, selection.functions))
    if recorder.error is not None:
        raise recorder.error
    return Run(result, recorder.trials, recorder.texts)


def trial(
    prompt: Union[str, Sequence[str]],
    *,
    agent: AgentLike,
    expect: Sequence[Mapping[str, Any]] = (),
    assertions: Iterable[Union[Assertion, CheckFunction]] = (),
    operators: Iterable[Union[Operator, Compare]] = (),
    files: Optional[Mapping[str, str]] = None,
    name: str = "trial",
    tags: Sequence[str] = (),
    directory: Union[str, "os.PathLike[str]", None] = None,
    on_event: Optional[Callable[[Event], None]] = None,
    program: Optional[str] = None,
    **options: Any,
) -> Run:
    """Runs one case that is written in Python.

    ``prompt`` is the message of the user, or a list of messages. ``expect`` are assertions as in a conversation file, such
    as ``{"contains": "30 days"}``. ``files`` are the files in the agent's directory. ``name`` identifies the case in the
    record. Raises ``TrialrunError`` if the case has an error, such as an unknown assertion.
    """
    if cast(object, agent) is None:
        raise TypeError("`agent` must be a function or the name of a configured agent, not None")
    refuse_unknown(options, OPTIONS | {"expect", "files", "name", "tags"})
    suite = conversation(prompt, name=name, expect=expect, files=files, tags=tags)
    finished = run(
        agent=agent,
        assertions=assertions,
        operators=operators,
        suites=[suite],
        directory=directory,
        on_event=on_event,
        program=program,
        **options,
    )
    errors = [problem for problem in finished.problems if problem["severity"] == "error"]
    if errors:
        data = {"problems": finished.problems, "text": finished.problems_text}
        raise TrialrunError(INVALID_TESTS, errors[0]["message"], data)
    return finished


def conversation(
    prompt: Union[str, Sequence[str]],
    *,
    name: str,
    expect: Sequence[Mapping[str, Any]] = (),
    files: Optional[Mapping[str, str]] = None,
    tags: Sequence[str] = (),
) -> InlineSuite:
    """Returns a suite with one conversation."""
    if not isinstance(cast(object, expect), (list, tuple)):
        raise TypeError(f"`expect` must be a list, not {type(expect).__name__}")
    for assertion in expect:
        if not isinstance(cast(object, assertion), Mapping):
            raise TypeError(f"each item of `expect` must be a map, not {type(assertion).__name__}")
    if files is not None and not isinstance(cast(object, files), Mapping):
        raise TypeError(f"`files` must be a map of paths to texts, not {type(files).__name__}")
    messages: Sequence[object] = prompt if isinstance(cast(object, prompt), (list, tuple)) else [prompt]
    wrong = [type(message).__name__ for message in messages if not isinstance(message, str)]
    if wrong or not messages:
        raise TypeError(f"`prompt` must be a string or a list of strings, not {wrong[0] if wrong else 'an empty list'}")
    written: Dict[str, Any] = {"name": name}
    if tags:
        written["tags"] = list(tags)
    written["turns"] = [{"says": message} for message in messages]
    if expect:
        written["assertions"] = [dict(assertion) for assertion in expect]
    if files:
        written["fixtures"] = {
            "files_unstaged": [{"path": path, "content": content} for path, content in files.items()]
        }
    plain = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in name).lstrip("-_.")
    return {"name": plain or "trial", "suite": written}


def check(
    *targets: Union[str, "os.PathLike[str]"],
    agent: Union[AgentLike, Sequence[AgentLike], None] = None,
    agents: Iterable[Union[Agent, Function]] = (),
    assertions: Iterable[Union[Assertion, CheckFunction]] = (),
    operators: Iterable[Union[Operator, Compare]] = (),
    suites: Sequence[InlineSuite] = (),
    directory: Union[str, "os.PathLike[str]", None] = None,
    program: Optional[str] = None,
    **options: Any,
) -> Check:
    """Reads and compiles tests, without running anything."""
    selection = Selection(targets, agent, agents, suites, options, assertions, operators)
    with Client(program, _directory(directory)) as client:
        return Check(cast(CheckResult, client.call("check", selection.with_agents)))


def list_trials(
    *targets: Union[str, "os.PathLike[str]"],
    agent: Union[AgentLike, Sequence[AgentLike], None] = None,
    agents: Iterable[Union[Agent, Function]] = (),
    assertions: Iterable[Union[Assertion, CheckFunction]] = (),
    operators: Iterable[Union[Operator, Compare]] = (),
    suites: Sequence[InlineSuite] = (),
    directory: Union[str, "os.PathLike[str]", None] = None,
    program: Optional[str] = None,
    **options: Any,
) -> List[PlannedTrial]:
    """Returns the trials that ``run`` would run."""
    selection = Selection(targets, agent, agents, suites, options, assertions, operators)
    with Client(program, _directory(directory)) as client:
        return cast(ListResult, client.call("list", selection.with_agents))["trials"]


def show(
    trial: str, *, directory: Union[str, "os.PathLike[str]", None] = None, program: Optional[str] = None
) -> ShowResult:
    """Returns a recorded trial with its transcript, as text and as JSON."""
    with Client(program, _directory(directory)) as client:
        return cast(ShowResult, client.call("show", {"trial": trial}))


def compare(
    before: str = "previous",
    after: str = "latest",
    *,
    directory: Union[str, "os.PathLike[str]", None] = None,
    program: Optional[str] = None,
) -> Comparison:
    """Compares two recorded runs."""
    with Client(program, _directory(directory)) as client:
        return Comparison(cast(CompareResult, client.call("compare", {"before": before, "after": after})))


def _directory(directory: Union[str, "os.PathLike[str]", None]) -> Optional[str]:
    return None if directory is None else os.fspath(directory)


COLOURS = {"passed": "#1a7f37", "failed": "#cf222e", "broken": "#9a6700", "undecided": "#9a6700"}


def _table(run: Run) -> str:
    rows: List[str] = []
    for trial in run.trials:
        outcome = html.escape(trial["outcome"])
        colour = COLOURS.get(outcome, "#57606a")
        name = html.escape(trial["id"])
        findings = "".join(_item(finding) for finding in trial["findings"])
        text = run.text_of(trial)
        details = f"<pre>{html.escape(text)}</pre>" if text else f"<ul>{findings}</ul>"
        rows.append(
            f'<tr><td style="color:{colour};vertical-align:top">{outcome}</td>'
            f'<td style="text-align:left"><details><summary>{name}</summary>{details}</details></td>'
            f"<td style=\"vertical-align:top\">{trial['duration_ms'] / 1000:.1f} s</td></tr>"
        )
    verdict = "passed" if run.passed else f"not passed (exit code {run.exit_code})"
    return f"<div><p>Run <code>{html.escape(run.id)}</code>: {verdict}</p><table>{''.join(rows)}</table></div>"


def _item(finding: Finding) -> str:
    return f"<li>{html.escape(finding['status'])}: {html.escape(finding['id'])}: {html.escape(finding['because'])}</li>"
