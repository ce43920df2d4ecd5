"""Compares verdicts on logs that inspect itself writes, in both of its formats: what its scorer `includes` accepts, and
what `contains` accepts in a replay of the log. Usage: side_by_side.py PROGRAM."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import tiktoken


class Words:
    """Counts words as tokens, because the real encodings are not on this machine."""

    def encode(self, text, **_):
        return text.split()

    encode_ordinary = encode


tiktoken.get_encoding = lambda _name: Words()

from inspect_ai import Task, eval  # noqa: E402
from inspect_ai.dataset import Sample  # noqa: E402
from inspect_ai.model import ModelOutput, get_model  # noqa: E402
from inspect_ai.scorer import includes  # noqa: E402
from inspect_ai.solver import generate, use_tools  # noqa: E402
from inspect_ai.tool import ToolError, tool  # noqa: E402

PROGRAM = sys.argv[1]
MODEL = "mockllm/model"
SAMPLES = 20
EPOCHS = 2


@tool
def find_order():
    async def execute(number: int):
        """Finds an order.

        Args:
            number: Number of the order.
        """
        if number % 5 == 0:
            raise ToolError("there is no such order")
        return f"order {number} is on its way " + "and on its way " * (100 if number % 7 == 0 else 0)

    return execute


def outputs():
    for epoch in range(EPOCHS):
        for number in range(SAMPLES):
            yield ModelOutput.for_tool_call(MODEL, "find_order", {"number": number})
            word = "late" if (number + epoch) % 3 == 0 else "on its way"
            yield ModelOutput.from_content(MODEL, f"Your order {number} is {word}.")


def main():
    samples = [Sample(id=f"order-{number}", input=f"Where is order {number}?", target="on its way") for number in range(SAMPLES)]
    task = Task(name="orders", dataset=samples, solver=[use_tools(find_order()), generate()], scorer=includes())
    for log_format in ("eval", "json"):
        with tempfile.TemporaryDirectory() as home:
            home = Path(home)
            log = eval(
                task, model=get_model(MODEL, custom_outputs=outputs()), epochs=EPOCHS, max_samples=1, display="none",
                log_dir=str(home / "logs"), log_format=log_format,
            )[0]
            assert log.status == "success", log.error
            theirs = {(sample.id, sample.epoch): sample.scores["includes"].value == "C" for sample in log.samples}
            calls = {(sample.id, sample.epoch): sum(len(m.tool_calls or []) for m in sample.messages if m.role == "assistant")
                     for sample in log.samples}
            (home / "tests").mkdir()
            for sample in samples:
                case = {
                    "scenario": sample.id, "system_prompt": "Help.", "user_prompt": sample.input, "trials": EPOCHS,
                    "assertions": [{"id": "says-so", "type": "contains", "text": sample.target}],
                }
                (home / "tests" / f"{sample.id}.yaml").write_text(json.dumps(case))
            file = next((home / "logs").iterdir())
            run = subprocess.run(
                [PROGRAM, "run", "tests", "--agent", f"recorded:{file}", "--report", "json=report.json"],
                cwd=home, capture_output=True, text=True,
            )
            assert run.returncode == 1, run.stdout + run.stderr
            trials = json.loads((home / "report.json").read_text())["trials"]
            ours = {(trial["case"], trial["repetition"]): trial["outcome"] == "passed" for trial in trials}
            own_calls = {(trial["case"], trial["repetition"]): len(trial["tool_calls"]) for trial in trials}
            assert len(ours) == SAMPLES * EPOCHS, len(ours)
            assert ours == theirs, [key for key in theirs if ours.get(key) != theirs[key]]
            assert own_calls == calls, [key for key in calls if own_calls.get(key) != calls[key]]
            print(f"{log_format}: {len(ours)} verdicts and their tool calls are equal, {sum(ours.values())} of them passed")


main()
