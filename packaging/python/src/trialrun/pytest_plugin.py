"""The plugin for pytest: suites are collected, one item for each case, and the fixture ``trialrun`` runs trials that are
written in Python.

All collected cases run in one run of trialrun. With xdist, the controller runs it, and the workers read its events from
a folder.
"""

# The types of pytest are not complete.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

import fnmatch
import importlib
import json
import os
import shutil
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any, Callable, Dict, Generator, Iterator, List, Mapping, Optional, Sequence, Set, Tuple, TypeVar, Union, cast

import pytest

from ._agent import Agent, as_agent, name_of, reason_of
from ._client import Client, TrialrunError
from ._function import Assertion, Operator
from ._program import ProgramNotFound
from ._protocol import EventParams, PlannedTrial, RunResult, Trial
from ._run import AgentLike, Run, Selection, conversation, list_trials
from ._run import trial as run_trial

T = TypeVar("T")

MAY_COST = "may cost money: pass `--trialrun-live` to run it"

POLL = 0.05
"""Seconds between two looks at the folder that the controller of xdist shares with its workers."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("trialrun", "trials of AI agents")
    group.addoption("--trialrun-live", action="store_true", default=None, help="also run what may cost money")
    group.addoption("--trialrun-agent", metavar="NAME", default=None, help="agent that runs all collected cases")
    group.addoption("--trialrun-trials", metavar="N", default=None, help="number of trials of each collected case")
    parser.addini("trialrun_suites", "globs of suites to collect, relative to the root directory", "args", [])
    parser.addini("trialrun_agents", "functions that suites use as agents, each as `module:function`", "linelist", [])
    parser.addini(
        "trialrun_functions", "assertions and operators that suites use, each as `module:function`", "linelist", []
    )
    parser.addini("trialrun_options", "options of the run of collected cases, each as `name=value`", "linelist", [])
    parser.addini("trialrun_live", "true to always run what may cost money", "bool", False)
    parser.addini("trialrun_undecided", "outcome of undecided cases: failed, error or skipped", default="failed")


def pytest_configure(config: pytest.Config) -> None:
    undecided = config.getini("trialrun_undecided")
    if undecided not in ("failed", "error", "skipped"):
        raise pytest.UsageError(f"trialrun_undecided is {undecided!r}, but must be `failed`, `error` or `skipped`")
    if not hasattr(config, "workerinput"):
        warn_of_unmatched_globs(config)
    config.addinivalue_line("markers", "trialrun_live: the test costs money, and needs `--trialrun-live`")
    config.stash[PLUGIN] = Plugin(config)
    config.pluginmanager.register(config.stash[PLUGIN], "trialrun-session")
    if config.pluginmanager.hasplugin("xdist"):
        config.pluginmanager.register(XdistHooks(config.stash[PLUGIN]), "trialrun-xdist")


def warn_of_unmatched_globs(config: pytest.Config) -> None:
    """Warns of globs of suites that do not match any file. With strict settings, this is an error."""
    unmatched = set(cast(List[str], config.getini("trialrun_suites")))
    for folder, folders, files in os.walk(config.rootpath):
        if not unmatched:
            return
        folders[:] = [name for name in folders if name != "node_modules" and not name.startswith(".")]
        here = Path(folder).relative_to(config.rootpath)
        paths = [(here / name).as_posix() for name in files]
        unmatched = {glob for glob in unmatched if not any(_matches(path, glob) for path in paths)}
    for glob in sorted(unmatched):
        message = f"trialrun_suites: `{glob}` does not match any file in {config.rootpath}"
        if is_strict(config):
            raise pytest.UsageError(message)
        config.issue_config_time_warning(pytest.PytestConfigWarning(message), stacklevel=2)


def is_strict(config: pytest.Config) -> bool:
    """Returns True if warnings about the configuration are errors. pytest 8 has an option, pytest 9 also settings."""
    for name in ("strict_config", "strict"):
        try:
            value = config.getini(name)
        except (KeyError, ValueError):
            continue
        if value is not None:
            return bool(value)
    return bool(config.getoption("strict_config", False))


class Outcomes:
    """The finished trials of the run, by case, and its end."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.trials: Dict[str, Trial] = {}
        self.texts: Dict[str, str] = {}
        self.decisions: List[Dict[str, Any]] = []
        self.result: Optional[RunResult] = None
        self.error: Optional[str] = None
        self.is_over = False

    def take(self, message: Mapping[str, Any]) -> None:
        """Takes an event of the run, or its end."""
        with self.changed:
            if "event" in message:
                event = message["event"]["event"]
                if event["type"] == "trial_finished":
                    self.trials[event["id"]] = cast(Trial, event)
                    self.texts[event["id"]] = message.get("text", "")
                elif event["type"] == "decided":
                    self.decisions.append(event)
            else:
                self.result, self.error, self.is_over = message.get("result"), message.get("error"), True
            self.changed.notify_all()

    def wait_for(self, planned: Sequence[PlannedTrial]) -> None:
        """Waits until the trials have finished, or the run is over."""
        ids = {trial["id"] for trial in planned}

        def is_done() -> bool:
            return self.is_over or ids <= self.trials.keys() or self._is_decided(planned)

        with self.changed:
            # With a timeout, Ctrl-C is noticed.
            while not is_done():
                self.changed.wait(1.0)

    def _is_decided(self, planned: Sequence[PlannedTrial]) -> bool:
        """Returns True if the number of trials was decided for each arm."""
        arms = {(trial["suite"], trial["case"], trial["arm"]) for trial in planned}
        decided = {(one.get("suite"), one.get("case"), one["arm"]) for one in self.decisions}
        return arms <= decided


class LocalRun:
    """The run of all collected cases, in this process."""

    def __init__(self, plugin: "Plugin", outcomes: Outcomes) -> None:
        self._plugin = plugin
        self._outcomes = outcomes
        self._client: Optional[Client] = None
        self._number = 0

    def start(self, targets: Sequence[str]) -> None:
        """Starts the run."""
        selection = self._plugin.selection(targets)
        self._client = Client(directory=str(self._plugin.config.rootpath))
        params = {**selection.params, "events": "trials"}
        self._number, result = self._client.start(params, selection.agents, self._take, selection.functions)

        def finish(_: object) -> None:
            error = result.exception()
            if error is None:
                self._outcomes.take({"result": result.result()})
            else:
                self._outcomes.take({"error": str(error)})

        result.add_done_callback(finish)

    def _take(self, params: EventParams) -> None:
        self._outcomes.take(params)

    def stop(self) -> None:
        """Stops the run if it is in progress, and waits for its end."""
        if self._client is not None:
            self._client.close()


class SharedRun:
    """The run of the controller of xdist, from the view of a worker. The first worker that needs it asks for it."""

    def __init__(self, folder: Path, outcomes: Outcomes) -> None:
        self._folder = folder
        self._outcomes = outcomes
        self._is_stopped = threading.Event()

    def start(self, targets: Sequence[str]) -> None:
        """Asks for the run, unless another worker did, and follows it."""
        part = self._folder / f"request-{os.getpid()}"
        part.write_text(json.dumps(list(targets)))
        try:
            os.link(part, self._folder / "request")
        except FileExistsError:
            pass
        threading.Thread(target=self._follow, name="trialrun-follow", daemon=True).start()

    def _follow(self) -> None:
        events = self._folder / "events"
        while not events.exists():
            if self._is_stopped.wait(POLL):
                return
        with events.open(encoding="utf-8") as file:
            line = ""
            while not self._outcomes.is_over:
                line += file.readline()
                if line.endswith("\n"):
                    self._outcomes.take(json.loads(line))
                    line = ""
                elif self._is_stopped.wait(POLL):
                    return

    def stop(self) -> None:
        """Follows the run no longer. The controller ends it."""
        self._is_stopped.set()


class Controller:
    """The run for the workers of xdist, in the controller."""

    def __init__(self, plugin: "Plugin") -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="trialrun-xdist-"))
        self._plugin = plugin
        self._is_stopped = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="trialrun-serve", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        request = self.folder / "request"
        while not request.exists():
            if self._is_stopped.wait(POLL):
                return
        outcomes = Written(self.folder / "events")
        run = LocalRun(self._plugin, outcomes)
        try:
            run.start(json.loads(request.read_text()))
        except (OSError, TrialrunError, Exception) as error:
            outcomes.take({"error": str(error)})
            return
        self._is_stopped.wait()
        run.stop()

    def stop(self) -> None:
        """Stops the run, and removes the folder."""
        self._is_stopped.set()
        self._thread.join()
        shutil.rmtree(self.folder, ignore_errors=True)


class Written(Outcomes):
    """Outcomes that are written to a file for other processes."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self._file = file.open("a", encoding="utf-8")

    def take(self, message: Mapping[str, Any]) -> None:
        with self.changed:
            self._file.write(json.dumps(message) + "\n")
            self._file.flush()


class Plugin:
    """State of a session of pytest."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.outcomes = Outcomes()
        self.controller: Optional[Controller] = None
        self._lister: Optional[Client] = None
        self._run: Union[LocalRun, SharedRun, None] = None
        self._targets: List[str] = []
        self._agents: Optional[List[Agent]] = None
        self._functions: Optional[List[Union[Assertion, Operator]]] = None

    @property
    def is_live(self) -> bool:
        return bool(self.config.getoption("trialrun_live") or self.config.getini("trialrun_live"))

    def matches(self, path: Path) -> bool:
        """Returns True if the file is a suite to collect."""
        globs = cast(List[str], self.config.getini("trialrun_suites"))
        try:
            relative = path.relative_to(self.config.rootpath).as_posix()
        except ValueError:
            return False
        return any(_matches(relative, glob) for glob in globs)

    def agents(self) -> List[Agent]:
        """Returns the agents that the configuration names."""
        if self._agents is None:
            self._agents = self._imported("trialrun_agents", as_agent)
        return self._agents

    def functions(self) -> List[Union[Assertion, Operator]]:
        """Returns the assertions and operators that the configuration names."""
        if self._functions is None:
            self._functions = self._imported("trialrun_functions", _as_function)
        return self._functions

    def _imported(self, setting: str, read: Callable[[Any], T]) -> List[T]:
        written = cast(List[str], self.config.getini(setting))
        return [_imported(setting, name, self.config.rootpath, read) for name in written]

    def selection(self, targets: Sequence[str]) -> Selection:
        """Returns the parameters for collecting or running `targets`."""
        options: Dict[str, Any] = {}
        for written in cast(List[str], self.config.getini("trialrun_options")):
            name, separator, value = written.partition("=")
            name = name.strip()
            if not separator:
                options[name] = True
            elif name in options:
                options[name] = [*_as_list(options[name]), value.strip()]
            else:
                options[name] = value.strip()
        trials = self.config.getoption("trialrun_trials")
        if trials is not None:
            options["trials"] = trials
        agent = self.config.getoption("trialrun_agent")
        if agent is not None:
            options["agent"] = [agent]
        agents, functions = self.agents(), self.functions()
        assertions = [function for function in functions if isinstance(function, Assertion)]
        operators = [function for function in functions if isinstance(function, Operator)]
        try:
            return Selection(targets, None, agents, [], options, assertions, operators)
        except TypeError as error:
            raise pytest.UsageError(f"trialrun_options: {error}") from None
        except ValueError as error:
            raise pytest.UsageError(f"trialrun_agents: {error}") from None

    def list_trials(self, path: Path) -> Tuple[List[PlannedTrial], str]:
        """Returns the planned trials of a file, and its problems as text."""
        if self._lister is None:
            self._lister = Client(directory=str(self.config.rootpath))
        result = self._lister.call("list", self.selection([str(path)]).with_agents)
        has_errors = any(problem["severity"] == "error" for problem in result["problems"])
        return result["trials"], result["text"] if has_errors else ""

    def results(self, item: "CaseItem") -> Outcomes:
        """Starts the run if necessary, and waits for the trials of a case."""
        if self._run is None:
            shared = getattr(self.config, "workerinput", {}).get("trialrun_folder")
            self._run = SharedRun(Path(shared), self.outcomes) if shared else LocalRun(self, self.outcomes)
            self._run.start(self._targets)
        self.outcomes.wait_for(item.planned)
        return self.outcomes

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Checks the settings, before xdist starts workers. During the collection, an error would be one of a file."""
        if self.config.getini("trialrun_suites"):
            self.selection([])

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if self._lister is not None:
            self._lister.close()
            self._lister = None
        cases = [item for item in session.items if isinstance(item, CaseItem)]
        self._targets = [item.target for item in cases if self.is_live or not item.may_cost]

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        if self._run is not None:
            self._run.stop()
        if self.controller is not None:
            self.controller.stop()
            self.controller = None
        if self._lister is not None:
            self._lister.close()
            self._lister = None


PLUGIN = pytest.StashKey[Plugin]()
RUNS = pytest.StashKey[List[Run]]()


class XdistHooks:
    """Hooks that exist only with xdist."""

    def __init__(self, plugin: Plugin) -> None:
        self._plugin = plugin

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        if self._plugin.controller is None:
            self._plugin.controller = Controller(self._plugin)
        node.workerinput["trialrun_folder"] = str(self._plugin.controller.folder)


def _matches(path: str, glob: str) -> bool:
    """Matches like a shell, where `**` also stands for no folder."""
    if fnmatch.fnmatchcase(path, glob):
        return "**" in glob or path.count("/") == glob.count("/")
    return "**/" in glob and fnmatch.fnmatchcase(path, glob.replace("**/", "", 1))


def _as_list(value: Any) -> List[Any]:
    return [*value] if isinstance(value, list) else [value]


def _as_function(found: object) -> Union[Assertion, Operator]:
    if isinstance(found, (Assertion, Operator)):
        return found
    raise TypeError("it must be made by `@trialrun.assertion` or `@trialrun.operator`")


def _imported(setting: str, written: str, root: Path, read: Callable[[Any], T]) -> T:
    """Imports a function, also from a module in the root directory."""
    module, separator, name = written.strip().partition(":")
    if not separator:
        raise pytest.UsageError(f"{setting}: `{written}` is not `module:function`")
    before = sys.path[:]
    sys.path.insert(0, str(root))
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
        return read(found)
    except Exception as error:
        raise pytest.UsageError(f"{setting}: cannot use `{written}`: {reason_of(error)}") from None
    finally:
        if sys.path[1:] == before:
            del sys.path[0]


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> Optional[pytest.Collector]:
    if parent.config.stash[PLUGIN].matches(file_path):
        return SuiteFile.from_parent(parent, path=file_path)
    return None


class InvalidSuite(Exception):
    """A suite with errors."""


class SuiteFile(pytest.File):
    """A suite."""

    def collect(self) -> Iterator[pytest.Item]:
        plugin = self.config.stash[PLUGIN]
        try:
            trials, problems = plugin.list_trials(self.path)
        except (TrialrunError, ProgramNotFound) as error:
            raise InvalidSuite(str(error)) from None
        if problems:
            raise InvalidSuite(problems)
        cases: Dict[Tuple[str, str], List[PlannedTrial]] = {}
        for trial in trials:
            cases.setdefault((trial["suite"], trial["case"]), []).append(trial)
        for (_, case), planned in cases.items():
            yield CaseItem.from_parent(self, name=case, planned=planned)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, InvalidSuite):
            return str(excinfo.value)
        return super().repr_failure(excinfo)


class CaseOutcome(Exception):
    """A case that did not pass, with its text, and its reason in one line."""

    def __init__(self, text: str, reason: str) -> None:
        super().__init__(text)
        self.reason = reason


def skip(reason: str) -> None:
    """Skips an item. The report names its file, and not this one."""
    raise pytest.skip.Exception(reason, _use_item_location=True)


def reasons(trials: Sequence[Trial]) -> str:
    """Returns the reasons of trials that did not pass, in one line."""
    found = [trial.get("because", trial["outcome"]) for trial in trials if trial["outcome"] != "passed"]
    return "; ".join(dict.fromkeys(found))


class CaseItem(pytest.Item):
    """A case of a suite, with all its trials."""

    def __init__(self, *, planned: List[PlannedTrial], **rest: Any) -> None:
        super().__init__(**rest)
        self.planned = planned
        self.may_cost = any(trial["may_cost"] for trial in planned)
        self.target = f"{planned[0]['file']}::{planned[0]['case']}"
        for tag in planned[0]["tags"]:
            name = "".join(letter if letter.isalnum() else "_" for letter in tag)
            if name.isidentifier():
                self.config.addinivalue_line("markers", f"{name}: tag of trialrun")
                self.add_marker(name)

    def reportinfo(self) -> Tuple[Path, int, str]:
        return self.path, self.planned[0]["line"] - 1, self.name

    def setup(self) -> None:
        """Waits for the trials. What says nothing about the agent is an error, and not a failure."""
        plugin = self.config.stash[PLUGIN]
        if self.may_cost and not plugin.is_live:
            skip(MAY_COST)
        outcomes = plugin.results(self)
        trials = self._trials(outcomes)
        for trial in trials:
            self.user_properties.append(("trialrun", f"{trial['id']} {trial['outcome']}"))
        if any(trial["flaky"] for trial in trials):
            self.user_properties.append(("trialrun_flaky", "true"))
        verdict = self._verdict(outcomes, trials)
        if verdict == "skipped":
            skip(reasons(trials))
        if verdict == "quarantined":
            pytest.xfail(f"in quarantine: {reasons(trials)}")
        if verdict == "error":
            raise self._outcome(outcomes, trials)

    def runtest(self) -> None:
        outcomes = self.config.stash[PLUGIN].outcomes
        trials = self._trials(outcomes)
        if self._verdict(outcomes, trials) == "failed":
            raise self._outcome(outcomes, trials)

    def shown(self, excinfo: pytest.ExceptionInfo[BaseException], outcome: CaseOutcome) -> object:
        """Returns what the report shows of a case that did not pass: its text, and its reason in the short summary."""
        shown = excinfo.getrepr(style="native")
        entries = cast(List[Any], shown.reprtraceback.reprentries)
        entries[0].lines = [str(outcome).rstrip("\n") + "\n"]
        del entries[1:]
        if shown.reprcrash is not None:
            shown.reprcrash.path, shown.reprcrash.lineno = str(self.path), self.planned[0]["line"]
            shown.reprcrash.message = outcome.reason
        return shown

    def _trials(self, outcomes: Outcomes) -> List[Trial]:
        ids = [trial["id"] for trial in self.planned]
        return [outcomes.trials[number] for number in ids if number in outcomes.trials]

    def _verdict(self, outcomes: Outcomes, trials: Sequence[Trial]) -> str:
        """Returns `passed`, `failed`, `error`, `skipped` or `quarantined`."""
        counted = [trial for trial in trials if trial.get("variant") != "without_skill"]
        decided = self._decisions(outcomes)
        found: Set[str] = {trial["outcome"] for trial in counted}
        if decided:
            # The pass rate decides, and not the single trials.
            answers = {one["answer"] for one in decided}
            found = {"passed" if answer == "met" else "failed" if answer == "not_met" else "undecided" for answer in answers}
        elif not counted or len(trials) < len(self.planned):
            return "error"
        undecided = cast(str, self.config.getini("trialrun_undecided"))
        if found <= {"passed"}:
            return "passed"
        if any("quarantine" in trial for trial in counted):
            return "quarantined"
        if "failed" in found:
            return "failed"
        if found & {"broken", "stale", "cancelled"}:
            return "error"
        if "undecided" in found:
            return undecided
        return "skipped" if found == {"skipped"} else "passed"

    def _decisions(self, outcomes: Outcomes) -> List[Dict[str, Any]]:
        own = (self.planned[0]["suite"], self.planned[0]["case"])
        return [one for one in outcomes.decisions if (one.get("suite"), one.get("case")) == own and "versus" not in one]

    def _outcome(self, outcomes: Outcomes, trials: Sequence[Trial]) -> CaseOutcome:
        text = self._text(outcomes, trials)
        failed = [finding for trial in trials if trial["outcome"] == "failed" for finding in trial["findings"]]
        found = [finding["because"] for finding in failed if finding["status"] == "unmet"]
        first = [*found, reasons(trials), text]
        return CaseOutcome(text, " ".join(next(filter(None, first), "").split()))

    def _text(self, outcomes: Outcomes, trials: Sequence[Trial]) -> str:
        texts = [outcomes.texts.get(trial["id"], "") for trial in trials]
        for one in self._decisions(outcomes):
            texts.append(f"  pass rate of {one['arm']}: {one['answer']} ({one['passed']} of {one['trials']} passed)\n")
        if not any(texts) or len(trials) < len(self.planned):
            stopped = outcomes.result["stopped_by"] if outcomes.result is not None else None
            reason = outcomes.error or (f"the run was stopped: {stopped}" if stopped else "the trial did not finish")
            texts.append(reason)
        return "\n".join(text.rstrip("\n") for text in texts if text)


@pytest.hookimpl(tryfirst=True)
def pytest_report_teststatus(report: pytest.TestReport) -> Optional[Tuple[str, str, str]]:
    is_flaky = ("trialrun_flaky", "true") in getattr(report, "user_properties", [])
    if is_flaky and report.when == "call" and report.passed:
        return "flaky", "~", "FLAKY"
    return None


class TrialRunner:
    """What the fixture ``trialrun`` returns."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._request = request
        self.runs: List[Run] = []

    def __call__(
        self,
        prompt: Union[str, Sequence[str]],
        *,
        agent: AgentLike,
        expect: Sequence[Mapping[str, Any]] = (),
        files: Optional[Mapping[str, str]] = None,
        name: Optional[str] = None,
        **options: Any,
    ) -> Run:
        """Runs one case, named after the test, and returns the run. See ``trialrun.trial``."""
        __tracebackhide__ = True
        plugin = self._request.config.stash[PLUGIN]
        case = name or str(self._request.node.name)
        directory = str(self._request.config.rootpath)
        if not plugin.is_live and cast(object, agent) is not None:
            known: AgentLike = agent
            if callable(agent) and not isinstance(agent, Agent):
                # It is not known what a function costs that says nothing about it.
                known = Agent(agent, name_of(agent), sandbox=False, costs=False)
            suite = conversation(prompt, name=case, expect=expect, files=files)
            rest = {key: value for key, value in options.items() if key not in ("tags", "on_event")}
            if any(trial["may_cost"] for trial in list_trials(agent=known, suites=[suite], directory=directory, **rest)):
                pytest.skip(MAY_COST)
        run = run_trial(prompt, agent=agent, expect=expect, files=files, name=case, directory=directory, **options)
        self.runs.append(run)
        return run


@pytest.fixture
def trialrun(request: pytest.FixtureRequest) -> TrialRunner:
    """Runs trials: ``result = trialrun("Hi", agent=bot, expect=[{"contains": "Hello"}]); assert result.passed``."""
    runner = TrialRunner(request)
    request.node.stash[RUNS] = runner.runs
    return runner


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("trialrun_live") is not None and not item.config.stash[PLUGIN].is_live:
        pytest.skip(MAY_COST)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
    """Shows the text of a case that did not pass instead of a traceback, and adds the trials that did not pass to the
    failure of a test that used the fixture."""
    outcome = yield
    report = outcome.get_result()
    if call.excinfo is not None and isinstance(call.excinfo.value, CaseOutcome) and isinstance(item, CaseItem):
        report.longrepr = item.shown(call.excinfo, call.excinfo.value)
    failed = [run for run in item.stash.get(RUNS, []) if not run.passed]
    if report.when == "call" and report.failed and failed:
        text = "\n".join(run.failure for run in failed)
        add = getattr(report.longrepr, "addsection", None)
        if add is not None:
            add("trials that did not pass", text)
