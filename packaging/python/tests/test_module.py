"""The module, with the real program."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import trialrun
from trialrun._client import Client

PARIS = [{"contains": "Paris"}]


@trialrun.agent(costs=False)
def bot(message):
    return "The capital of France is Paris." if "France" in message else "I do not know."


def children() -> str:
    """Returns the processes that this process has started."""
    return subprocess.run(["ps", "-o", "args=", "--ppid", str(os.getpid())], capture_output=True, text=True).stdout


def test_a_trial_passes_and_fails():
    passed = trialrun.trial("What is the capital of France?", agent=bot, expect=PARIS, trials=2)
    assert passed.passed and bool(passed) and passed.failure == ""
    assert [trial["outcome"] for trial in passed.trials] == ["passed", "passed"]
    assert passed.trials[0]["answer"] == "The capital of France is Paris."
    failed = trialrun.trial("What is the capital of Spain?", agent=bot, expect=PARIS)
    assert not failed.passed and failed.exit_code == 1
    assert "Paris" in failed.failure and "I do not know." in failed.failure
    with pytest.raises(trialrun.TrialsFailed, match="I do not know"):
        failed.raise_for_failure()
    assert "Paris" in failed._repr_html_() and "<table>" in failed._repr_html_()
    assert "rpc" not in children()


def test_a_suite_runs_with_functions_and_their_tool_calls():
    Path("tests").mkdir()
    Path("tests/order.yaml").write_text(
        "name: order\nagent: shop\nturns:\n  - says: Where is order 7?\n    expect:\n"
        "      - tool_called: { tool: lookup, args_match: { id: '7' } }\n  - says: And now?\n"
        "assertions:\n  - contains: second\n"
    )
    seen = []

    @trialrun.agent(name="shop")
    async def shop(message: trialrun.Message):
        await asyncio.sleep(0)
        seen.append((str(message), len(message.history), message.directory, message.conversation_id))
        calls = [{"name": "lookup", "arguments": {"id": 7}, "result": "sent"}] if not message.history else []
        return {"text": "second" if message.history else "first", "tool_calls": calls, "usage": {"input": 3, "output": 2}}

    assert trialrun.check(agents=[shop]).valid
    listed = trialrun.list_trials(agents=[shop])
    assert [trial["case"] for trial in listed] == ["order"] and listed[0]["may_cost"]
    events = []
    run = trialrun.run(agents=[shop], on_event=lambda event: events.append(event["event"]["type"]))
    assert run.passed, run.failure
    assert [entry[:3] for entry in seen] == [("Where is order 7?", 0, None), ("And now?", 2, None)]
    assert events[0] == "run_started" and events[-1] == "run_finished" and "step" in events
    assert run.trials[0]["tool_calls"][0]["name"] == "lookup"
    assert "Where is order 7?" in trialrun.show("order")["text"]
    trialrun.run(agents=[shop])
    assert trialrun.compare().exit_code in (0, 3)


@trialrun.assertion
def at_most_words(answer, limit):
    assert len(answer.split()) <= limit, f"it has {len(answer.split())} words"
    return True


@trialrun.assertion(name="about")
async def is_about(evidence, arguments):
    await asyncio.sleep(0)
    found = arguments["topic"] in evidence.messages[1]["content"]
    return {"passed": found, "score": 1.0 if found else 0.0, "reason": f"it is about {arguments['topic']}"}


@trialrun.operator
def even(actual, expected):
    return (len(actual) % 2 == 0) == expected


def test_functions_are_assertions_and_operators():
    functions = {"assertions": [at_most_words, is_about], "operators": [even]}
    expect = [{"at_most_words": 9}, {"type": "about", "topic": "Paris"}, {"expect": {"output": {"$even": False}}}]
    assert trialrun.trial("France?", agent=bot, expect=expect, **functions).passed
    failed = trialrun.trial("France?", agent=bot, expect=[{"at_most_words": 2}, *expect], **functions)
    assert "it has 6 words" in failed.failure and failed.exit_code == 1
    assert trialrun.expect(["ab", "a"]).match([{"$even": True}, {"$even": False}], operators=[even])
    assert not trialrun.expect("abc").match({"$even": True}, operators=[even])
    forgetful = trialrun.operator(name="even")(lambda actual, expected: None)
    assert trialrun.expect("abc").match({"$even": True}, operators=[forgetful]).passed is None
    with pytest.raises(trialrun.TrialrunError, match="unknown assertion type `at_most_words`"):
        trialrun.trial("France?", agent=bot, expect=expect)
    with pytest.raises(trialrun.TrialrunError, match="`contains` is a built-in assertion"):
        trialrun.check(assertions=[trialrun.assertion(name="contains")(lambda answer: True)])


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda answer: {}["x"], r"KeyError: 'x' \(.*test_module.py:\d+\)"),
        (lambda answer: None, "it returned nothing; it must return true, false"),
        (lambda answer: 0.7, "it must return true, false, or a map with `passed`, not 0.7"),
        (lambda answer: {"passed": True, "reason": "x" * (17 << 20)}, "more than 16 MiB"),
        (lambda answer: object(), "cannot be written as JSON"),
        (lambda answer: time.sleep(3), "it did not answer within 0.5 s"),
    ],
)
def test_a_mistake_in_an_assertion_breaks_the_trial(function, reason):
    timeout = 0.5 if "0.5 s" in reason else 30
    mistaken = trialrun.assertion(name="mistaken", timeout=timeout)(function)
    run = trialrun.trial("France?", agent=bot, expect=[{"mistaken": True}, {"contains": "x"}], assertions=[mistaken])
    assert (run.trials[0]["outcome"], run.trials[0]["fault"]) == ("broken", "test")
    assert re.search(reason, run.trials[0]["because"]), run.trials[0]["because"]


def test_a_slow_listener_does_not_delay_the_agent():
    release, answered = threading.Event(), []

    @trialrun.agent(costs=False)
    def counting(message):
        answered.append(message)
        if len(answered) == 20:
            release.set()
        return "ok"

    seen = []

    def listen(event):
        assert release.wait(60)
        seen.append(event["event"]["type"])

    assert trialrun.trial("Hi", agent=counting, expect=[{"contains": "ok"}], trials=20, on_event=listen).passed
    assert seen[-1] == "run_finished"


def test_an_agent_works_in_its_directory():
    @trialrun.agent(sandbox=True, costs=False)
    def writer(message):
        (message.directory / "notes.md").write_text((message.directory / "todo.md").read_text().upper())
        return "done"

    run = trialrun.trial(
        "Copy it", agent=writer, files={"todo.md": "milk"}, expect=[{"file_contains": {"path": "notes.md", "contains": "MILK"}}]
    )
    assert run.passed, run.failure


@pytest.mark.parametrize(
    "behaviour, outcome, reason",
    [
        ("raises", "failed", "ValueError: no idea"),
        ("exits", "failed", "SystemExit"),
        ("nothing", "failed", "returned nothing"),
        ("number", "failed", "must return a str or a dict, not int"),
        ("object", "failed", "cannot be written as JSON"),
        ("large", "failed", "more than 16 MiB"),
        ("deep", "failed", ""),
        ("unreachable", "broken", "the database is down"),
        ("loop", "failed", "timed out"),
        ("sleep", "failed", "timed out"),
    ],
)
def test_the_right_party_is_at_fault(behaviour, outcome, reason):
    ended = threading.Event()

    def deep():
        value = []
        for _ in range(900):
            value = [value]
        return {"text": "x", "more": value}

    def loop():
        try:
            while True:
                pass
        finally:
            ended.set()

    async def sleep():
        try:
            await asyncio.sleep(3600)
        finally:
            ended.set()

    def raises(error):
        raise error

    answers = {
        "raises": lambda: raises(ValueError("no idea")),
        "exits": lambda: sys.exit(3),
        "nothing": lambda: None,
        "number": lambda: 7,
        "object": lambda: {"text": object()},
        "large": lambda: "x" * (17 << 20),
        "deep": deep,
        "unreachable": lambda: raises(trialrun.Unreachable("the database is down")),
        "loop": loop,
        "sleep": sleep,
    }
    agent = trialrun.agent(costs=False, name="bad")(lambda message: answers[behaviour]())
    options = {"timeout": "300ms"} if behaviour in ("loop", "sleep") else {}
    before = children().count(" rpc")
    run = trialrun.trial("Hi", agent=agent, expect=[{"contains": "x"}], **options)
    assert run.trials[0]["outcome"] == outcome, run.text
    assert reason in run.failure, run.failure
    if options:
        assert ended.wait(30), "the agent goes on"
    # Another test may have left the client of expectations.
    assert children().count(" rpc") == before


def test_two_runs_at_once_do_not_see_each_other():
    results = {}

    def runs(city):
        agent = trialrun.agent(costs=False, name="same")(lambda message: city)
        results[city] = trialrun.trial("Which city?", agent=agent, expect=[{"contains": city}], trials=3)

    threads = [threading.Thread(target=runs, args=(city,)) for city in ("Paris", "Rome")]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert all(run.passed for run in results.values()), results
    with Client() as client:
        agents = {city: trialrun.agent(costs=False, name="same")(lambda message, city=city: city) for city in ("A", "B")}
        started = []
        for city, agent in agents.items():
            suite = {"name": "s", "suite": {"name": city, "turns": [{"says": "?"}], "assertions": [{"contains": city}]}}
            params = {"suites": [suite], "options": {"agent": ["same"]}}
            started.append(client.start(params, {"same": agent}, None)[1])
        assert [result.result()["exit_code"] for result in started] == [0, 0]


def test_mistakes_are_explained():
    with pytest.raises(TypeError, match="`trails` is not an option of a run .did you mean `trials`"):
        trialrun.run(trails=3)
    with pytest.raises(trialrun.TrialrunError, match="invalid value '0' for '--jobs <N>'"):
        trialrun.trial("Hi", agent=bot, jobs=0)
    with pytest.raises(trialrun.TrialrunError, match="`codex` is a built-in agent"):
        trialrun.trial("Hi", agent=trialrun.agent(name="codex")(lambda message: "x"))
    with pytest.raises(ValueError, match="two agents are called `<lambda>`|two agents are called `lambda`"):
        trialrun.run(agent=[lambda message: "a", lambda message: "b"])
    with pytest.raises(trialrun.TrialrunError, match="(?s)unknown assertion type `containz`.*did you mean `contains`"):
        trialrun.trial("Hi", agent=bot, expect=[{"containz": "x"}])
    for expect in ({"contains": "x"}, "x", None):
        with pytest.raises(TypeError, match="`expect` must be a list, not (dict|str|NoneType)"):
            trialrun.trial("Hi", agent=bot, expect=expect)
    for prompt, kind in [(3, "int"), (None, "NoneType"), (["a", 3], "int"), ([], "an empty list")]:
        with pytest.raises(TypeError, match=f"`prompt` must be a string or a list of strings, not {kind}"):
            trialrun.trial(prompt, agent=bot)
    with pytest.raises(trialrun.TrialrunError, match="`none.yaml` is neither a file"):
        trialrun.list_trials("none.yaml")
    with pytest.raises(TypeError, match="each item of `expect` must be a map, not str"):
        trialrun.trial("Hi", agent=bot, expect=["contains"])
    for agent in (7, None, {"name": "bot"}, [None]):
        with pytest.raises(TypeError, match="`agent` must be a function or the name of a configured agent, not"):
            trialrun.trial("Hi", agent=agent, expect=PARIS)
    with pytest.raises(TypeError, match="`expects` is not an option of a run .did you mean `expect`"):
        trialrun.trial("Hi", agent=bot, expects=PARIS)
    with pytest.raises(TypeError, match="`files` must be a map of paths to texts, not list"):
        trialrun.trial("Hi", agent=bot, files=["notes.md"])
    assert repr(trialrun.TrialrunError) == "<class 'trialrun.TrialrunError'>"
    with pytest.raises(TypeError, match="`agent` is an empty list"):
        trialrun.trial("Hi", agent=[], expect=PARIS)
    for make in (lambda: trialrun.run(agents=["bot"]), lambda: trialrun.agent("bot")):
        with pytest.raises(TypeError, match="an agent must be a function, not str"):
            make()
    with pytest.raises(ZeroDivisionError):
        trialrun.trial("Hi France", agent=bot, expect=PARIS, on_event=lambda event: 1 / 0)


def answering(message: object) -> str:
    return f"read line; echo '{json.dumps(message)}'; cat > /dev/null"


@pytest.mark.parametrize(
    "script, reason",
    [
        (answering({"id": 1, "error": {"code": -32001, "message": "trialrun 9 speaks version 2"}}), "/other: trialrun 9 speaks"),
        (answering({"id": 1, "result": {"protocol": 2}}), "/other speaks version 2 .*, and this package speaks version 1"),
        (answering({"id": 1, "result": {}}), "/other does not speak .*: its answer .* does not contain a version"),
        (answering([1]), r"/other does not speak .*: it wrote a line that is not a message: \[1\]"),
        ("echo Hello; exec sleep 3600", "/other does not speak .*: it wrote a line that is not a message: Hello"),
        ("exec sleep 3600", "/other does not speak the protocol of this package: it did not answer within 0.5 s"),
        ("echo \"error: unrecognized subcommand 'rpc'\" >&2; exit 2", "/other is too old for this package: update it"),
        ("echo 'no such command' >&2; exit 2", "(?s)/other ended unexpectedly .exit code 2.*no such command"),
    ],
)
def test_another_program_is_refused(tmp_path, monkeypatch, script, reason):
    if "did not answer" in reason:
        monkeypatch.setenv("TRIALRUN_HANDSHAKE_TIMEOUT", "0.5")
    other = tmp_path / "other"
    other.write_text(f"#!/bin/sh\n{script}\n")
    other.chmod(0o755)
    with pytest.raises(trialrun.ProtocolError, match=reason):
        trialrun.run(program=str(other))
    assert "other" not in children()


def test_a_program_that_cannot_be_started_is_reported(tmp_path, monkeypatch):
    with pytest.raises(trialrun.ProtocolError, match="cannot start"):
        trialrun.run(program=str(tmp_path / "missing"))
    monkeypatch.setenv("TRIALRUN_HANDSHAKE_TIMEOUT", "soon")
    with pytest.raises(trialrun.ProtocolError, match="TRIALRUN_HANDSHAKE_TIMEOUT is soon, which is not a number"):
        trialrun.run()


def test_a_program_that_dies_in_a_callback_is_reported():
    def kill(message):
        os.kill(client._process.pid, signal.SIGKILL)
        time.sleep(0.2)
        return "too late"

    with Client() as client:
        agent = trialrun.agent(costs=False)(kill)
        suite = {"name": "s", "suite": {"name": "s", "turns": [{"says": "?"}], "assertions": [{"contains": "x"}]}}
        with pytest.raises(trialrun.ProtocolError, match="ended unexpectedly .signal 9"):
            client.run({"suites": [suite], "options": {"agent": ["kill"]}}, {"kill": agent})


CLIENT = """
import sys, time, trialrun
def slow(message):
    print("called", flush=True)
    time.sleep(3600)
try:
    trialrun.trial("Hi", agent=trialrun.agent(costs=False)(slow), expect=[{"contains": "x"}], name="slow")
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_client_that_ends_in_a_callback_leaves_nothing_running(number):
    process = subprocess.Popen([sys.executable, "-c", CLIENT], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "called\n"
    servers = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True).stdout
    (server,) = [int(line) for line in servers.split()]
    process.send_signal(number)
    rest = process.communicate()[0]
    assert rest == ("interrupted\n" if number == signal.SIGINT else "")
    deadline = time.monotonic() + 30
    while is_running(server) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_running(server)
    assert "cancelled" in trialrun.show("slow")["text"]


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    return not state.exists() or state.read_text().rsplit(")", 1)[1].split()[0] != "Z"


def test_values_are_matched():
    match = trialrun.expect({"name": "Ada", "tags": ["new"]}).matches({"name": "/^A/", "tags": {"$contains": "new"}})
    assert match.passed and match.score == 1
    with pytest.raises(trialrun.MismatchError, match="(?s)does not match.*tags"):
        trialrun.expect({"name": "Ada", "tags": []}).matches({"tags": {"$contains": "new"}})
    with pytest.raises(trialrun.MismatchError, match="unknown operator `.nothing`"):
        trialrun.expect("x").matches({"$nothing": "x"})
    assert not trialrun.expect([1, 2, 3]).match([1, 2], strict=True)
    with pytest.raises(trialrun.TrialrunError, match="containz"):
        trialrun.expect("x").matches({"$containz": "x"})


def test_an_expectation_after_a_fork_has_a_program_of_its_own():
    trialrun.expect(1).matches(1)
    pid = os.fork()
    if pid == 0:
        os._exit(0 if trialrun.expect("Paris").match("/^P/") else 1)
    assert os.waitpid(pid, 0)[1] == 0
    trialrun.expect(1).matches(1)


def test_the_spans_of_a_function_show_what_it_did():
    trace = pytest.importorskip("opentelemetry.trace")
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")

    def work(order):
        call = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "lookup", "gen_ai.tool.call.arguments": order}
        answer = {"gen_ai.operation.name": "chat", "gen_ai.response.finish_reasons": ["stop"]}
        for attributes in (call, answer):
            with trace.get_tracer("test").start_as_current_span("work", attributes=attributes):
                pass

    @trialrun.agent(costs=False, traces="otlp")
    def plain(message):
        work('{"id": 7}')
        return "sent"

    @trialrun.agent(costs=False, traces="otlp")
    async def awaited(message):
        await asyncio.sleep(0)
        work('{"id": 8}')
        return "sent"

    for bot, number in ((plain, 7), (awaited, 8)):
        expected = [{"tool_called": {"tool": "lookup", "args_match": {"id": number}}}, {"no_tool_called": {"tool": "refund"}}]
        run = trialrun.trial("Where is my order?", agent=bot, expect=expected, trials=3)
        assert run.passed, run.failure
    with pytest.raises(ValueError, match='`traces` must be "otlp", not \'zipkin\''):
        trialrun.agent(traces="zipkin")(lambda message: "")
