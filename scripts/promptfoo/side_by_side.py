"""Runs the same configuration with promptfoo and with trialrun, with the providers `echo` and `exec:`, and compares the
score and the verdict of each test and assertion. Arguments: the program trialrun, and the folder of an npm project with
promptfoo and Node.js."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

TEXTS = {
    "plain": "The quick brown fox jumps over the lazy dog.",
    "json": '{"name": "Ann", "tags": ["a", "b"], "n": 5}',
    "around": 'Here it is: {"name": "Bo"} and {"id": 7}.',
    "xml": "<order><id>7</id><item>a</item><item>b</item></order>",
    "html": "<div><p>Hello <b>Ann</b>, it's 5 o'clock.</p></div>",
    "refusal": "I'm sorry, but I can't help with that request.",
    "number": "5",
    "lines": "one two\nthree, four.\n\nfive",
    "calls": '[{"name": "search", "arguments": {}}, {"name": "save"}]',
}

ASSERTIONS = [
    {"type": "equals", "value": "5"},
    {"type": "equals", "value": 5},
    {"type": "equals", "value": {"name": "Ann", "tags": ["a", "b"], "n": 5.0}},
    {"type": "contains", "value": "fox"},
    {"type": "contains", "value": 5},
    {"type": "icontains", "value": "ANN"},
    {"type": "contains-all", "value": ["quick", "lazy"]},
    {"type": "contains-all", "value": 'one, "three, four"'},
    {"type": "contains-any", "value": ["zebra", "Ann"]},
    {"type": "icontains-all", "value": "THE, DOG"},
    {"type": "icontains-any", "value": ["ZEBRA", "BO"]},
    {"type": "starts-with", "value": "The"},
    {"type": "regex", "value": "^\\{.*\\}$"},
    {"type": "regex", "value": "\\bfive$"},
    {"type": "is-json"},
    {"type": "is-json", "value": {"type": "object", "required": ["tags"]}},
    {"type": "is-json", "value": "type: object\nrequired: [missing]\n"},
    {"type": "contains-json"},
    {"type": "contains-json", "value": {"required": ["id"]}},
    {"type": "is-xml"},
    {"type": "is-xml", "value": "order.id"},
    {"type": "is-xml", "value": {"requiredElements": ["order.item.1"]}},
    {"type": "contains-xml"},
    {"type": "contains-xml", "value": ["order.none"]},
    {"type": "is-html"},
    {"type": "contains-html"},
    {"type": "is-refusal"},
    {"type": "is-valid-openai-tools-call"},
    {"type": "levenshtein", "value": "6", "threshold": 1},
    {"type": "levenshtein", "value": "The quick brown fox jumped over a lazy dog."},
    {"type": "bleu", "value": "The quick brown fox jumps over a lazy dog."},
    {"type": "bleu", "value": ["one two three", "the lazy dog"], "threshold": 0.1},
    {"type": "gleu", "value": "The quick brown fox jumps over a lazy dog"},
    {"type": "gleu", "value": ["I'm sorry, but I can't help you."], "threshold": 0.3},
    {"type": "rouge-n", "value": "I'm sorry, but I cannot help with the request."},
    {"type": "rouge-n", "value": "It's a quick fox; isn't it (really)?", "threshold": 0.2},
    {"type": "word-count", "value": 9},
    {"type": "word-count", "value": {"min": 2, "max": 6}},
    {"type": "word-count", "value": "1"},
    {"type": "latency", "threshold": 100000},
    {"type": "javascript", "value": "output.length > 20"},
    {"type": "javascript", "value": "Math.min(output.length / 50, 1)", "threshold": 0.5},
    {"type": "javascript", "value": "const n = JSON.parse(output); n.name === 'Ann';"},
    {"type": "javascript", "value": "if (output.includes('Ann')) {\n  return {pass: true, score: 0.25, reason: 'r'};\n}\nreturn false;"},
    {"type": "javascript", "value": "context.vars.text === output.trim()"},
    {"type": "python", "value": "len(output) > 20"},
    {"type": "python", "value": "import re\nreturn {'pass': bool(re.search('fox', output)), 'score': 0.5, 'reason': 'r'}"},
    {"type": "tool-call-f1", "value": "search, save"},
    {"type": "tool-call-f1", "value": ["search", "other", "more"], "threshold": 0.3},
    {"type": "contains", "value": "BROWN", "transform": "output.toUpperCase()"},
    {"type": "contains", "value": "{{ text | upper }}"},
    {"type": "contains-any", "value": ["{{ text.split('o') | length }}", "none"]},
]

# Tests with several assertions. Each is made with each text.
TESTS = [
    {"threshold": 0.5, "assert": [{"type": "contains", "value": "fox"}, {"type": "contains", "value": "cat"}]},
    {"threshold": 0.6, "assert": [{"type": "contains", "value": "fox", "weight": 2}, {"type": "contains", "value": "cat"}]},
    {"assert": [{"type": "contains", "value": "zebra", "weight": 0}, {"type": "regex", "value": "o"}]},
    {"assert": [{"type": "assert-set", "threshold": 0.5, "weight": 3,
                 "assert": [{"type": "contains", "value": "fox"}, {"type": "contains", "value": "cat"}]},
                {"type": "regex", "value": "o"}]},
    {"assert": [{"type": "assert-set", "weight": 3,
                 "assert": [{"type": "contains", "value": "o"}, {"type": "contains", "value": "fox", "weight": 3}]},
                {"type": "regex", "value": "o"}]},
    {"options": {"transform": "output.trim().split(/\\s+/).length"}, "assert": [{"type": "equals", "value": 9}]},
    {"options": {"prefix": "<p>", "suffix": "</p>"}, "assert": [{"type": "starts-with", "value": "<p>"}]},
    {"kind": "no-assertions", "assert": []},
    {"kind": "matches-everything", "assert": [{"type": "regex", "value": "."}]},
    {"kind": "unknown-variable", "assert": [{"type": "contains", "value": "{{ txet }}"}]},
]

# What differs on purpose: the start of the name of a test, or its end, with the reason. docs/coming-from-promptfoo.md
# says the same for users.
DIFFERENCES = {
    "no-assertions/": "a test that asserts nothing is undecided here, and passes there",
    "matches-everything/": "an assertion that every answer meets breaks the case here, and passes there",
    "unknown-variable/": "a variable that does not exist breaks the case here, and is empty there",
    "tool-call-f1": "a program that does not report its calls is undecided here if its answer names none",
    "not-is-valid-openai-tools-call": "`not-` inverts the verdict here, and is ignored there",
    "not-tool-call-f1": "a program that does not report its calls is undecided here if its answer names none",
}


def each_assertion():
    inverse = [{**assertion, "type": "not-" + assertion["type"]} for assertion in ASSERTIONS]
    return ASSERTIONS + inverse


def verdicts_of(name, verdict, score, parts):
    """Yields the verdict of a test, and those of its assertions if each has one of its own."""
    if not name.startswith("each/"):
        yield name, (verdict, round(score, 4))
        return
    for number, (assertion, (passed, score)) in enumerate(zip(each_assertion(), parts, strict=True)):
        kind, text = assertion["type"], name.split("/")[-1]
        yield f"{kind}/{number % len(ASSERTIONS)}/{text}", (passed, round(score, 4))


def tests():
    for name, text in TEXTS.items():
        yield f"each/0/{name}", text, {"assert": each_assertion()}
        for number, test in enumerate(TESTS):
            kind = test.get("kind", "several")
            yield f"{kind}/{number}/{name}", text, {key: value for key, value in test.items() if key != "kind"}


def configuration(provider):
    made = [{"description": name, "vars": {"text": text}, **test} for name, text, test in tests()]
    return {"prompts": ["{{text}}"], "providers": [provider], "tests": made}


def there(node_project, folder):
    home = folder / "home"
    home.mkdir(exist_ok=True)
    environment = {
        "PATH": f"{node_project}/node_modules/node/bin:/usr/bin:/bin",
        "HOME": str(home),
        "PROMPTFOO_CONFIG_DIR": str(home / "promptfoo"),
        "PROMPTFOO_DISABLE_TELEMETRY": "1",
        "PROMPTFOO_DISABLE_UPDATE": "1",
        "PROMPTFOO_DISABLE_REMOTE_GENERATION": "1",
        "PROMPTFOO_PYTHON": "python3",
    }
    program = f"{node_project}/node_modules/promptfoo/dist/src/entrypoint.js"
    options = ["-c", "promptfooconfig.json", "--no-cache", "--no-table", "--no-write", "-o", "there.json"]
    command = ["node", program, "eval", *options]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if not (folder / "there.json").exists():
        sys.exit(f"promptfoo: {done.stdout}{done.stderr}")
    results = json.loads((folder / "there.json").read_text())["results"]["results"]
    verdicts = {}
    for result in results:
        error = result.get("failureReason") == 2
        name, verdict = result["testCase"]["description"], "error" if error else result["success"]
        parts = (result.get("gradingResult") or {}).get("componentResults") or []
        parts = [(part["pass"], part["score"]) for part in parts]
        if error and name.startswith("each/"):
            sys.exit(f"promptfoo: {name}: {result.get('error')}")
        verdicts.update(verdicts_of(name, verdict, result["score"], parts))
    return verdicts


def verdict(word):
    return {"passed": True, "met": True, "failed": False, "unmet": False}.get(word, word)


def here(program, folder):
    environment = {**os.environ, "HOME": str(folder / "home")}
    options = ["--report", "json=here.json", "--jobs", "2", "--state", str(folder / "state")]
    command = [program, "run", "promptfooconfig.json", *options]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if not (folder / "here.json").exists():
        sys.exit(f"trialrun: {done.stdout}{done.stderr}")
    verdicts = {}
    for trial in json.loads((folder / "here.json").read_text())["trials"]:
        findings = [one for one in trial["findings"] if one["type"] == "promptfoo"]
        weight = sum(one["weight"] for one in findings)
        score = sum(one["weight"] * (one["score"] or 0) for one in findings) / weight if weight else 0
        parts = [(verdict(one["status"]), one["score"] or 0) for one in findings]
        verdicts.update(verdicts_of(trial["case"], verdict(trial["outcome"]), score, parts))
    return verdicts


def is_expected(name):
    return next((reason for part, reason in DIFFERENCES.items() if name.startswith(part) or name.endswith(part)), None)


def main():
    program, node_project = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    wrong, used = [], set()
    for provider in ("echo", "exec:python3 bot.py"):
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            (folder / "bot.py").write_text("import sys\nprint(sys.argv[1])\n")
            (folder / "promptfooconfig.json").write_text(json.dumps(configuration(provider)))
            theirs, ours = there(node_project, folder), here(program, folder)
            for name in sorted(theirs.keys() | ours.keys()):
                pair = (theirs.get(name), ours.get(name))
                if pair[0] == pair[1]:
                    continue
                if is_expected(name):
                    used.add(is_expected(name))
                else:
                    wrong.append(f"{provider} {name}: promptfoo {pair[0]}, trialrun {pair[1]}")
            print(f"{provider}: {len(ours)} verdicts compared")
    wrong += [f"no test differs as expected: {reason}" for reason in set(DIFFERENCES.values()) - used]
    print("\n".join(wrong))
    sys.exit(bool(wrong))


main()
