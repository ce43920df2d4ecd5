"""The plugin, in real sessions of pytest."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

INI = """
[pytest]
trialrun_suites = tests/*.yaml
trialrun_agents = bot:bot
"""

BOT = """
import trialrun

@trialrun.agent(costs=False)
def bot(message):
    if message == "break":
        raise trialrun.Unreachable("no database")
    with open("asked", "a") as file:
        print(message, file=file)
    return {"text": f"You said {message}.", "tool_calls": []}

@trialrun.agent
def paid(message):
    return "Expensive."

@trialrun.assertion
def shorter_than(answer, limit):
    return len(answer) < limit
"""


def case(name, says, expected, more=""):
    return f"name: {name}\nagent: bot\n{more}turns:\n  - says: {says}\nassertions:\n{expected}"


def contains(text):
    return f"  - contains: {text}\n"


@pytest.fixture
def suites(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(pytester.path), *sys.path]))
    pytester.makeini(INI)
    pytester.makepyfile(bot=BOT)
    folder = pytester.mkdir("tests")
    write = {
        "good": case("good", "hello", contains("hello"), "tags: [smoke]\n"),
        "bad": case("bad", "hello", contains("goodbye")),
        "broken": case("broken", "break", contains("x")),
        "unchecked": "name: unchecked\nagent: bot\nturns:\n  - says: hm\n",
        "known": case("known", "hello", contains("goodbye"), "quarantine: { reason: flaky service, since: 2026-01-31 }\n"),
        "skipped": case("skipped", "hello", contains("hello"), "skip: not today\n"),
    }
    for name, text in write.items():
        (folder / f"{name}.yaml").write_text(text)
    return pytester


def asked(pytester: pytest.Pytester) -> list:
    file = pytester.path / "asked"
    return sorted(file.read_text().split()) if file.exists() else []


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return pytester.runpytest_subprocess("-p", "no:cacheprovider", *arguments, timeout=600)


def runs_recorded(pytester: pytest.Pytester) -> int:
    history = subprocess.run(
        [os.environ["TRIALRUN_PROGRAM"], "history", "--json"], cwd=pytester.path, capture_output=True, text=True
    )
    return history.stdout.count('"label"') if history.returncode == 0 else 0


def test_each_outcome_has_its_own_in_pytest(suites):
    result = run(suites, "-rA")
    result.assert_outcomes(passed=1, failed=2, errors=1, xfailed=1, skipped=1)
    result.stdout.fnmatch_lines(["*no database*", "*goodbye*", "*tests/skipped.yaml*not today*"])
    assert "Traceback" not in result.stdout.str()
    assert asked(suites) == ["hello", "hello", "hello", "hm"]


def test_undecided_is_configurable(suites):
    suites.makeini(INI + "trialrun_undecided = skipped\n")
    run(suites, "-k", "unchecked").assert_outcomes(skipped=1)
    suites.makeini(INI + "trialrun_undecided = perhaps\n")
    result = run(suites)
    assert result.ret == pytest.ExitCode.USAGE_ERROR and "trialrun_undecided" in result.stderr.str()


def test_only_selected_cases_run(suites):
    run(suites, "-k", "good").assert_outcomes(passed=1)
    assert asked(suites) == ["hello"]
    run(suites, "-m", "smoke", "--strict-markers").assert_outcomes(passed=1)
    assert asked(suites) == ["hello", "hello"]
    result = run(suites, "--collect-only", "-q")
    result.stdout.fnmatch_lines(["tests/good.yaml::good"])
    run(suites, "tests/good.yaml::good").assert_outcomes(passed=1)
    assert len(asked(suites)) == 3


def test_last_failed_selects_cases(suites):
    suites.runpytest_subprocess("-k", "good or bad").assert_outcomes(passed=1, failed=1)
    suites.runpytest_subprocess("--lf", "-k", "good or bad").assert_outcomes(failed=1)
    assert len(asked(suites)) == 3


def test_the_first_failure_stops_the_run(suites):
    for number in range(20):
        (suites.path / f"tests/z{number:02}.yaml").write_text(case(f"z{number}", "slow", contains("slow")))
    suites.makepyfile(bot=BOT.replace('    with open', '    if message == "slow": __import__("time").sleep(0.5)\n    with open'))
    suites.makeini(INI + "trialrun_options = jobs=1\n")
    result = run(suites, "-x", "-k", "bad or z")
    result.assert_outcomes(failed=1)
    assert asked(suites).count("slow") < 10


@pytest.mark.parametrize("workers", ["1", "3"])
def test_workers_share_one_run(suites, workers):
    pytest.importorskip("xdist")
    result = run(suites, "-n", workers)
    result.assert_outcomes(passed=1, failed=2, errors=1, xfailed=1, skipped=1)
    assert asked(suites) == ["hello", "hello", "hello", "hm"], "each case once"
    assert runs_recorded(suites) == 1


def test_a_report_for_other_tools_contains_the_findings(suites):
    run(suites, "--junitxml=report.xml")
    report = (suites.path / "report.xml").read_text()
    assert 'name="bad"' in report and "goodbye" in report and "<error" in report and 'name="trialrun"' in report


def test_what_may_cost_money_needs_a_flag(suites):
    (suites.path / "tests/paid.yaml").write_text(
        "name: paid\nagent: paid\nturns:\n  - says: x\nassertions:\n  - contains: Expensive\n"
    )
    suites.makeini(INI + "    bot:paid\n")
    suites.makepyfile(
        test_paid="import bot, pytest\n"
        "def test_function(trialrun):\n    assert trialrun('x', agent=bot.paid, expect=[{'contains': 'Expensive'}]).passed\n"
        "@pytest.mark.trialrun_live\ndef test_marked():\n    pass\n"
        "@pytest.mark.parametrize('agent', ['claude-code', bot.paid])\n"
        "def test_unmarked(trialrun, agent):\n    assert not trialrun('x', agent=agent, expect=[{'contains': 'Expensive'}])\n"
        "def test_judge(trialrun):\n"
        "    expect = [{'rubric': ['polite']}]\n"
        "    assert not trialrun('x', agent=bot.bot, judge='anthropic:claude-haiku-4-5', expect=expect)\n"
        "def test_free(trialrun):\n    assert trialrun('x', agent=lambda message: 'Free', expect=[{'contains': 'Free'}])\n"
    )
    result = run(suites, "-k", "paid", "-rs")
    result.assert_outcomes(skipped=6, passed=1)
    result.stdout.fnmatch_lines(["*--trialrun-live*"])
    live = run(suites, "-k", "paid and not unmarked and not judge", "--trialrun-live")
    live.assert_outcomes(passed=4)


@pytest.mark.parametrize("arguments", [[], ["tests/good.yaml::good"], ["-n", "2"]])
def test_agents_are_imported_from_the_root_folder(suites, monkeypatch, arguments):
    if "-n" in arguments:
        pytest.importorskip("xdist")
    monkeypatch.delenv("PYTHONPATH")
    script = Path(sys.executable).parent / "pytest"
    finished = subprocess.run([script, "-k", "good", *arguments], capture_output=True, text=True)
    assert finished.returncode == 0, finished.stdout


def test_functions_are_assertions_of_suites(suites):
    suites.makeini(INI + "trialrun_functions = bot:shorter_than\n")
    (suites.path / "tests/good.yaml").write_text(case("good", "hello", "  - shorter_than: 30\n"))
    (suites.path / "tests/bad.yaml").write_text(case("bad", "hello", "  - shorter_than: 3\n"))
    (suites.path / "tests/broken.yaml").write_text(case("broken", "hello", "  - shorter_than: x\n"))
    result = run(suites, "-k", "good or bad or broken")
    result.assert_outcomes(passed=1, failed=1, errors=1)
    result.stdout.fnmatch_lines(["*TypeError: *bot.py:*", "*`shorter_than` does not hold*"])


@pytest.mark.parametrize(
    "settings, reason",
    [
        ("trialrun_agents = bot:bto", "cannot use `bot:bto`: AttributeError"),
        ("trialrun_agents = bto:bot", "cannot use `bto:bot`: ModuleNotFoundError: No module named 'bto'"),
        ("trialrun_agents = faulty:bot", "cannot use `faulty:bot`: ZeroDivisionError: division by zero (faulty.py:1)"),
        ("trialrun_agents = bot:BOT", "cannot use `bot:BOT`: TypeError: an agent must be a function, not str"),
        ("trialrun_agents = bot", "`bot` is not `module:function`"),
        ("trialrun_functions = bot:bot", "cannot use `bot:bot`: TypeError: it must be made by `@trialrun.assertion`"),
        ("trialrun_options = trails=3", "trialrun_options: `trails` is not an option of a run (did you mean `trials`?)"),
    ],
)
def test_a_wrong_setting_is_an_error_of_usage(suites, settings, reason):
    suites.makepyfile(faulty="1 / 0", bot=BOT + "BOT = 'bot'\n")
    suites.makeini(f"[pytest]\ntrialrun_suites = tests/*.yaml\n{settings}\n")
    result = run(suites)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert reason in result.stderr.str() and "Traceback" not in result.stderr.str()
    assert "_run.py" not in result.stdout.str()


def test_a_glob_without_files_is_reported(suites):
    suites.makeini(INI.replace("tests/*.yaml", "tests/*.yaml test/*.yaml **/goo*.yaml"))
    result = run(suites, "-k", "good")
    result.assert_outcomes(passed=1, warnings=1)
    result.stdout.fnmatch_lines(["*trialrun_suites: `test/[*].yaml` does not match any file in *"])
    result = run(suites, "--strict-config")
    assert result.ret == pytest.ExitCode.USAGE_ERROR and "does not match any file" in result.stderr.str()


def test_the_short_summary_has_the_first_failed_finding(suites):
    result = run(suites, "-k", "bad or broken", "-rfE", "-vv")
    result.stdout.fnmatch_lines(
        ['FAILED tests/bad.yaml::bad - the answer does not contain "goodbye"', "ERROR tests/broken.yaml::broken - *no database*"]
    )


def test_an_unknown_agent_of_a_suite_gets_a_suggestion(suites):
    (suites.path / "tests/wrong.yaml").write_text(case("wrong", "x", contains("x")).replace("agent: bot", "agent: bto"))
    run(suites).stdout.fnmatch_lines(["*unknown agent `bto`*", "*did you mean `bot`*"])


def test_a_suite_with_an_error_is_not_collected(suites):
    (suites.path / "tests/wrong.yaml").write_text("scenario: wrong\nuser_promt: x\n")
    result = run(suites)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*user_promt*", "*did you mean*"])


def test_a_flaky_case_is_shown(suites):
    suites.makepyfile(
        bot="import os, trialrun\n@trialrun.agent(costs=False)\ndef bot(message):\n"
        "    first = not os.path.exists('seen')\n    open('seen', 'w').close()\n    return 'no' if first else 'yes'\n"
    )
    (suites.path / "tests/flaky.yaml").write_text(case("flaky", "x", contains("yes"), "reruns: 1\n"))
    result = run(suites, "-k", "flaky", "-v")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*FLAKY*", "*1 flaky*"])


def test_the_failure_of_a_test_shows_the_trials(suites):
    suites.makepyfile(
        test_bot="import bot\n"
        "def test_refund(trialrun):\n"
        "    result = trialrun('refund', agent=bot.bot, trials=2, expect=[{'contains': 'money'}])\n"
        "    assert result.passed\n"
    )
    result = run(suites, "test_bot.py")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*assert result.passed*", "*trials that did not pass*", "*test_refund*", "*contains*", "*money*"]
    )


def test_a_mistake_in_a_case_is_shown_in_the_line_of_the_test(suites):
    suites.makepyfile(
        test_bot="import bot\n"
        "def test_refund(trialrun):\n"
        "    trialrun('refund', agent=bot.bot, expect=[{'containz': 'money'}])\n"
    )
    result = run(suites, "test_bot.py")
    result.stdout.fnmatch_lines([">*trialrun('refund'*", "E*unknown assertion type `containz`*", "test_bot.py:3: TrialrunError"])
    result.stdout.no_fnmatch_line("*_run.py*")


def test_ctrl_c_leaves_nothing_running(suites):
    suites.makepyfile(bot="import time\ndef bot(message):\n    open('called', 'w').close()\n    time.sleep(3600)\n    return 'x'\n")
    suites.makeini(INI + "trialrun_live = true\n")
    command = [sys.executable, "-m", "pytest", "-k", "good"]
    process = subprocess.Popen(command, cwd=suites.path, stdout=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not (suites.path / "called").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    servers = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True).stdout
    process.send_signal(signal.SIGINT)
    output = process.communicate(timeout=600)[0]
    assert process.returncode == 2 and "KeyboardInterrupt" in output, output
    for server in servers.split():
        assert not Path(f"/proc/{server}").exists()
