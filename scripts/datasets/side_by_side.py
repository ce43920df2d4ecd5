"""Scores the same answers with the scorers of inspect and the metric ToolCorrectness of DeepEval, and with trialrun.
Compares each score. Argument: the program trialrun. Runs in an environment that has both packages."""

import asyncio
import itertools
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from deepeval.metrics import ExactMatchMetric, ToolCorrectnessMetric
from deepeval.models import DeepEvalBaseLLM
from deepeval.test_case import LLMTestCase, ToolCall, ToolCallParams
from inspect_ai.model import ModelName, ModelOutput
from inspect_ai.scorer import Target, answer, choice, exact, f1, includes, match, pattern
from inspect_ai.solver import TaskState
from inspect_ai.solver._multiple_choice import parse_answers, set_choices_based_on_generated_response

ANSWERS = [
    "Oslo", "It is Oslo.", "oslo, I think", "**Oslo**", "The capital: (Oslo)", "", "   ", "Os lo", "OSLO\n", "Bergen or Oslo!",
    "ANSWER: B", "answer : b\n", "ANSWER: A\nNo.\nANSWER: C.", "ANSWER: (B)", "**ANSWER: $B$**", "ANSWER: Oslo", "ANSWER: Oslo!",
    "I think\nANSWER: Oslo\n", "ANSWER: Oslo it is", "ANSWER: A, C", "ANSWER: A and C", "ANSWER: CA", "ANSWER: D", "ANSWER:",
    "42", "The total is $1,200.", "about 3.14159 or 3.1416", "-7.50", "60%", "1e3", "(42)", "= 42", "<42", "25", "I have 3 or 4.",
    "a big Blue lake", "The blue-green lake", "lake lake lake", "an answer is: yes", "Yes", "no; yes", "is 3 of 4", "3 of 3",
]
TARGETS = [["Oslo"], ["oslo", "Bergen"], ["B"], ["A", "C"], ["42"], ["1200"], ["3.1416"], ["-7.5"], ["5"], ["60", "60%"], ["1000"],
           ["blue lake"], ["the Lake"], ["yes"], ["3"], ["."]]
SCORERS = [
    ("match", {}, match()),
    ("match", {"location": "begin"}, match(location="begin")),
    ("match", {"location": "any"}, match(location="any")),
    ("match", {"location": "exact"}, match(location="exact")),
    ("match", {"ignore_case": False}, match(ignore_case=False)),
    ("match", {"numeric": True}, match(numeric=True)),
    ("match", {"numeric": True, "location": "any"}, match(numeric=True, location="any")),
    ("match", {"numeric": True, "location": "begin"}, match(numeric=True, location="begin")),
    ("match", {"numeric": True, "location": "exact"}, match(numeric=True, location="exact")),
    ("includes", {}, includes()),
    ("includes", {"ignore_case": False}, includes(ignore_case=False)),
    ("pattern", {"pattern": r"is:? (\w+)"}, pattern(r"is:? (\w+)")),
    ("pattern", {"pattern": r"(\d) of (\d)", "match_all": True}, pattern(r"(\d) of (\d)", match_all=True)),
    ("pattern", {"pattern": r"(\d) of (\d)"}, pattern(r"(\d) of (\d)")),
    ("pattern", {"pattern": "Oslo", "ignore_case": False}, pattern("Oslo", ignore_case=False)),
    ("answer", {"pattern": "letter"}, answer("letter")),
    ("answer", {"pattern": "word"}, answer("word")),
    ("answer", {"pattern": "line"}, answer("line")),
    ("exact", {}, exact()),
    ("f1", {}, f1()),
    ("f1", {"stop_words": ["big"]}, f1(stop_words=["big"])),
]
CHOICES = ["Bergen", "Oslo", "Tromsø"]
# Scores that are not the same, with the reason.
DIFFERENCES = {
    "empty": "an answer without text has no target, also an empty one",
}

CALLS = [
    [], [("search", {"q": "lake"})], [("search", {"q": "lake", "n": 3}), ("book", {"day": 1})],
    [("book", {"day": 1}), ("search", {"q": "sea"})], [("search", {"q": "lake"}), ("search", {"q": "lake"})],
    [("search", {"q": {"a": 1, "b": 2}})],
]
OPTIONS = [
    {}, {"should_exact_match": True}, {"should_consider_ordering": True}, {"compare": ["input"]}, {"strict_mode": True},
    {"compare": ["input"], "should_consider_ordering": True}, {"compare": ["input"], "should_exact_match": True},
]

BOT = """import json, sys
for line in sys.stdin:
    print(json.loads(line)["message"].split("\\n")[0], flush=True)
"""


class NoModel(DeepEvalBaseLLM):
    def load_model(self):
        return self

    def generate(self, *_, **__):
        raise RuntimeError("no model is asked")

    async def a_generate(self, *_, **__):
        raise RuntimeError("no model is asked")

    def get_model_name(self):
        return "none"


def state(text, choices=None):
    return TaskState(model=ModelName("none/none"), sample_id=1, epoch=1, input="x", messages=[], choices=choices,
                     output=ModelOutput.from_content("none", text))


def score(scorer, task, targets):
    value = asyncio.run(scorer(task, Target(targets))).value
    return {"C": 1.0, "I": 0.0, "N": 0.0}.get(value, value)


def samples():
    """Yields the name of a suite, its scorers, its settings, the targets and the answer, and the scores of inspect."""
    scorers = [{name: arguments} for name, arguments, _ in SCORERS]
    for targets, text in itertools.product(TARGETS, ANSWERS):
        yield "texts", scorers, {}, targets, text, [score(scorer, state(text), targets) for *_, scorer in SCORERS]
    for multiple, targets, text in itertools.product((False, True), (["B"], ["A", "C"], ["AC"]), ANSWERS):
        task = state(text, CHOICES)
        set_choices_based_on_generated_response(task, parse_answers(task, multiple))
        rest = {"multiple_correct": multiple, "choices": CHOICES}
        yield f"choice-{multiple}", [{"choice": {}}], rest, targets, text, [score(choice(), task, targets)]


def run(program, folder, suites):
    """Returns the scores of each case."""
    (folder / "bot.py").write_text(BOT)
    (folder / "trialrun.yaml").write_text("agent: {type: subprocess, command: python3 bot.py}\n")
    for name, suite in suites.items():
        (folder / f"{name}.json").write_text(json.dumps(suite.pop("rows")))
        (folder / f"{name}.yaml").write_text(json.dumps({"dataset": f"{name}.json", **suite}))
    environment = {**os.environ, "HOME": str(folder / "home")}
    options = ["--report", "json=here.json", "--jobs", "4", "--state", str(folder / "state"), "--sandbox", "local"]
    done = subprocess.run([program, "run", *[f"{name}.yaml" for name in suites], *options], cwd=folder, env=environment,
                          capture_output=True, text=True)
    if not (folder / "here.json").exists():
        sys.exit(f"trialrun: {done.stdout}{done.stderr}")
    trials = json.loads((folder / "here.json").read_text())["trials"]
    graders = lambda trial: [one["score"] for one in trial["findings"] if one["type"] == "grader"]
    return {f"{trial['suite']}/{trial['case']}": graders(trial) or [trial["outcome"]] for trial in trials}


def compared(title, theirs, ours, wrong, used):
    count = 0
    for name in sorted(theirs.keys() | ours.keys()):
        (there, reason, text), here = theirs.get(name, ([], None, "")), ours.get(name, [])
        for index, (one, other) in enumerate(itertools.zip_longest(there, here)):
            count += 1
            if isinstance(one, (int, float)) and isinstance(other, (int, float)) and abs(one - other) < 1e-9:
                continue
            if reason:
                used.add(reason)
            else:
                wrong.append(f"{title} {name} {index}: there {one}, here {other}: {text}")
    print(f"{title}: {count} scores compared")


def main():
    program = os.path.abspath(sys.argv[1])
    wrong, used, suites, theirs = [], set(), {}, {}
    for name, scorers, rest, targets, text, there in samples():
        # The program under test says the first line of the message.
        suite = suites.setdefault(name, {"format": "inspect", "scorers": scorers, "rows": [],
                                         **{key: rest[key] for key in rest if key != "choices"}})
        identity = f"{len(suite['rows']):04}"
        row = {"id": identity, "input": json.dumps({"message": text, "tool_calls": []}), "target": targets}
        suite["rows"].append({**row, **({"choices": CHOICES} if "choices" in rest else {})})
        theirs[f"{name}/{identity}"] = (there, None if text.strip() else "empty", f"{targets} {text!r}")
    with tempfile.TemporaryDirectory() as place:
        compared("inspect", theirs, run(program, Path(place), suites), wrong, used)

    suites, theirs = {}, {}
    for number, options in enumerate(OPTIONS):
        name = f"tools-{number}"
        suite = suites.setdefault(name, {"format": "deepeval", "metrics": [{"ToolCorrectness": options}], "rows": []})
        for expected, called in itertools.product(CALLS, CALLS):
            tools = [[ToolCall(name=tool, input_parameters=given) for tool, given in calls] for calls in (expected, called)]
            compare = [ToolCallParams.INPUT_PARAMETERS] if "compare" in options else []
            metric = ToolCorrectnessMetric(model=NoModel(), evaluation_params=compare, async_mode=False,
                                           **{key: options[key] for key in options if key != "compare"})
            case = LLMTestCase(input="x", actual_output="y", expected_tools=tools[0], tools_called=tools[1])
            there = metric.measure(case, _show_indicator=False)
            identity = f"{len(suite['rows']):04}"
            said = [{"name": tool, "arguments": given} for tool, given in called]
            suite["rows"].append({
                "name": identity, "input": json.dumps({"message": "y", "tool_calls": said}),
                "expected_tools": [{"name": tool, "input_parameters": given} for tool, given in expected]})
            theirs[f"{name}/{identity}"] = ([there], None, f"{options} {expected} {called}")
    suite = suites.setdefault("exact", {"format": "deepeval", "metrics": ["ExactMatch"], "rows": []})
    for expected, text in itertools.product(("Oslo", "oslo", " Oslo "), ("Oslo", "Oslo\n", "It is Oslo")):
        metric = ExactMatchMetric()
        there = metric.measure(LLMTestCase(input="x", actual_output=text, expected_output=expected), _show_indicator=False)
        identity = f"{len(suite['rows']):04}"
        said = json.dumps({"message": text, "tool_calls": []})
        suite["rows"].append({"name": identity, "input": said, "expected_output": expected})
        theirs[f"exact/{identity}"] = ([float(there)], None, f"{expected!r} {text!r}")
    with tempfile.TemporaryDirectory() as place:
        compared("deepeval", theirs, run(program, Path(place), suites), wrong, used)
    wrong += [f"no score differs as expected: {reason}" for key, reason in DIFFERENCES.items() if key not in used]
    print("\n".join(wrong[:40]))
    sys.exit(bool(wrong))


main()
