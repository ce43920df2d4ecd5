"""Runs the same cases with `claude plugin eval` and with trialrun on the same scripted model, and compares the scores,
the verdicts and the differences between the arms. Arguments: the program trialrun, and the directory of the agents that
`scripts/agents` fills."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import model

# Each group of graders is combined with each script.
GRADERS = {
    "regex": """
  - { type: regex, name: lake, pattern: "LAKE", flags: i }
  - { type: regex, name: twice, pattern: bread, match: "count:2" }
  - { type: regex, name: traced, pattern: '"type":"tool_use"', target: trace, weight: 2 }""",
    "not": """
  - { type: regex, name: no-rain, pattern: rain, match: not_contains }
  - { type: regex, name: no-skill-text, pattern: "Launching skill", match: not_contains, target: trace }""",
    "tools": """
  - { type: tool_used, name: globbed, tool: Glob }
  - { type: tool_used, name: quiet, tool: Bash, min: 0, max: 0 }
  - { type: tool_used, name: wrote, tool: Write, input_match: 'plan\\.md', weight: 3 }""",
    "order": """
  - { type: tool_order, name: reads-first, before: Read, after: Glob }
  - { type: regex, name: lake, pattern: lake }""",
    "files": """
  - { type: file_exists, name: made, path: "*.md" }
  - { type: file_exists, name: not-made, path: "**/*.zip", exists: false }
  - { type: regex, name: in-file, pattern: lake, target: { source: file, path: plan.md } }
  - { type: regex, name: listed, pattern: "^plan[.]md$", target: files }""",
    "skill": """
  - { type: tool_used, name: fired, tool: Skill }
  - { type: tool_used, name: fired-twice, tool: Skill, arm: both, min: 0, max: 0 }
  - { type: regex, name: lake, pattern: lake }
  - { type: regex, name: only-with, pattern: zebra, arm: with-only }""",
}

# The verdicts that differ on purpose, by script. docs/coming-from-claude-plugin-eval.md gives the reasons.
DIFFERENCES = {
    "http-500": "broken here, and score 0 there",
    "slow": "failed here, and graded there",
    "refusal": "failed or broken here, and graded there",
    "loop": "failed here, and graded there",
}


def write_suite(root):
    (root / ".claude-plugin").mkdir(parents=True)
    (root / ".claude-plugin/plugin.json").write_text('{"name": "picnics", "version": "0.1.0", "description": "d"}')
    (root / "skills/plan").mkdir(parents=True)
    (root / "skills/plan/SKILL.md").write_text("---\nname: plan\ndescription: Plans picnics.\n---\nPlan a picnic.\n")
    for group, graders in GRADERS.items():
        for script in model.SCRIPTS:
            case = root / "evals" / f"{group}-{script}"
            case.mkdir(parents=True)
            limits = {"slow": ", timeout_seconds: 3", "loop": ", max_turns: 2"}.get(script, "")
            (case / "case.yaml").write_text(
                f'schema_version: "1.1"\nname: {group}-{script}\nruns: 1\n'
                f'execution: {{ prompt: "Plan a picnic. [script: {script}]"{limits}, '
                f"allowed_tools: [Read, Glob, Skill, Write] }}\ngraders:{graders}\n"
            )


def environment(agents, home, url):
    return {
        "PATH": f"{agents}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(home),
        "TERM": "dumb",
        "ANTHROPIC_API_KEY": "sk-test",
        "ANTHROPIC_BASE_URL": url,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "CLAUDE_CODE_MAX_RETRIES": "1",
        "IS_SANDBOX": "1",
    }


def results(path):
    """Returns the scores and the verdict of each case."""
    found = {}
    for case in json.loads(path.read_text())["cases"]:
        figures = case["aggregates"]
        runs = case["arms"]["with"]
        found[case["name"]] = {
            "score": figures.get("score"),
            "without": figures.get("scoreWithout"),
            "delta": figures.get("delta"),
            "passed": all(run["passed"] for run in runs),
        }
    return found


def rounded(result):
    return {key: round(value, 6) if isinstance(value, float) else value for key, value in result.items()}


def main():
    trialrun, agents = (Path(argument).resolve() for argument in sys.argv[1:3])
    with tempfile.TemporaryDirectory() as folder:
        root, home = Path(folder) / "picnics", Path(folder) / "home"
        home.mkdir()
        write_suite(root)
        env = environment(agents, home, model.start())
        there, here = Path(folder) / "there.json", Path(folder) / "here.json"
        there_args = ["claude", "plugin", "eval", ".", "--trust-plugin", "--no-publish", "--json", str(there)]
        there_args += ["--allow-tools", "Write", "-j", "4"]
        here_args = [str(trialrun), "run", ".", "--agent", "claude-code", "--jobs", "4", "--retries", "0"]
        here_args += ["--report", f"plugin-eval={here}"]
        times = []
        for arguments in (there_args, here_args):
            begun = os.times().elapsed
            ran = subprocess.run(
                arguments, cwd=root, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
            )
            times.append(os.times().elapsed - begun)
            if ran.returncode not in (0, 1, 3):
                sys.exit(f"{arguments[0]}: exit code {ran.returncode}\n{ran.stdout}\n{ran.stderr}")
        theirs, ours = results(there), results(here)
    wrong = []
    for name, their in theirs.items():
        our = ours.get(name)
        script = next(script for script in model.SCRIPTS if name.endswith(f"-{script}"))
        if our is None or (rounded(our) != rounded(their) and script not in DIFFERENCES):
            wrong.append(f"{name}: {their} there, {our} here")
        if script == "http-500" and our is not None and (our["score"] is not None or our["passed"]):
            wrong.append(f"{name}: an HTTP 500 has the score {our['score']}")
    same = sum(rounded(ours.get(name, {})) == rounded(their) for name, their in theirs.items())
    print(f"{len(theirs)} cases, {same} with equal results; {times[0]:.1f} s there, {times[1]:.1f} s here")
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
