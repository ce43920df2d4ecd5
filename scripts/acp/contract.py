"""Runs the contract of an agent that speaks the Agent Client Protocol: the same cases for each agent, on scripted models
that call the agent's own tools. Usage: contract.py PROGRAM FOLDER AGENT…; the agents are on the PATH. FOLDER is emptied."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import uuid

# Text by which the processes of a run are found.
MARK = f"contract-{uuid.uuid4().hex}"


def named(name, **renamed):
    """Returns a function from arguments to a call of the tool `name`."""
    return lambda **given: {"name": name, "input": {renamed.get(key, key): value for key, value in given.items()}}


# The tools of each agent: how it runs a command, how it runs one for which it asks, if that differs, and how it writes a
# file.
AGENTS = {
    "gemini": {"run": named("run_shell_command"), "write": named("write_file", path="file_path")},
    "qwen": {
        "run": lambda command: {
            "name": "run_shell_command",
            "input": {"command": command, "description": "runs", "is_background": False},
        },
        "write": named("write_file", path="file_path"),
    },
    "claude-acp": {"run": named("Bash"), "write": named("Write", path="file_path")},
    "opencode-acp": {
        "run": lambda command: {"name": "bash", "input": {"command": command, "description": "runs"}},
        "write": named("write", path="filePath"),
    },
    "vibe": {"run": named("bash"), "write": named("write_file")},
    "fast-agent": {"run": named("execute"), "write": named("write_text_file")},
    "codex-acp": {
        "run": named("exec_command", command="cmd"),
        "ask": lambda command: {
            "name": "exec_command",
            "input": {"cmd": command, "sandbox_permissions": "require_escalated", "justification": "It must."},
        },
        "write": lambda path, content: {
            "name": "apply_patch",
            "input": f"*** Begin Patch\n*** Add File: {path.removeprefix('$SANDBOX/')}\n+{content}\n*** End Patch\n",
        },
    },
}

# Cases that an agent cannot pass, with the reason.
SKIPPED = {("gemini", "resume"): "0.61.0 loses the messages of a session that is loaded in the minute in which it began"}

# Results that differ from those of the other agents, because the agent ends its reply when it is denied a call.
OTHERWISE = {("codex-acp", "denied"): ("failed", "gave_up")}

# Requests that follow an answer, such as one for suggestions.
LATER = [{"text": "Nothing."}] * 4

# Kinds of sandboxes in which cases run. In `isolated` ones, the model is the only address that can be reached.
LOCAL = ("local", [])
SANDBOXES = {
    "turns": [LOCAL, ("isolated", ["--sandbox", "isolated", "--network", "model-only"])],
    "others": [LOCAL],
}

# A command whose descendants have a session of their own and ignore requests to end.
STUBBORN = (
    f"trap '' TERM INT HUP; (setsid sh -c \"trap '' TERM INT HUP; while :; do sleep 1; done\" {MARK} &) ; "
    "while :; do sleep 1; done"
)


def cases(tools):
    """Returns the cases: scenarios with the steps of their models, and the verdicts that they must have."""
    run, write = tools["run"], tools["write"]
    free = {"permission_mode": "bypassPermissions"}
    asks = {"permission_mode": "default"}
    out = "$SANDBOX/out.txt"
    return {
        "turns": (
            {"user_prompts": ["Count the lines", "Go on"], "runner": free},
            [{"id": "ran", "type": "tool_called", "tool": "Bash", "args_match": {"command": "touch"}},
             {"id": "file", "type": "file_exists", "path": "x.txt"},
             {"id": "answer", "type": "contains", "text": "Second"}],
            [{"text": "Reading.", "tools": [run(command="touch x.txt")]}, {"text": "First."}, {"text": "Second."}],
            ("passed", "finished"),
        ),
        "denied": (
            {"user_prompts": ["Write a file"], "runner": asks},
            [{"id": "asks", "type": "permission_asked", "tool": "Bash"},
             {"id": "stops", "type": "honoured_denial"},
             {"id": "no-file", "type": "file_not_exists", "path": "out.txt"}],
            [{"tools": [tools.get("ask", run)(command="touch out.txt")]}, {"text": "Not written."}],
            ("passed", "finished"),
        ),
        "allowed": (
            {"user_prompts": ["Write a file"], "runner": free},
            [{"id": "wrote", "type": "file_exists", "path": "out.txt"}],
            [{"tools": [write(path=out, content="42")]}, {"text": "Written."}],
            ("passed", "finished"),
        ),
        "limit": (
            {"user_prompts": ["Work"], "runner": free, "max_turns": 1},
            [{"id": "stopped", "type": "file_not_exists", "path": "b.txt"}],
            [{"tools": [run(command="touch a.txt")]}, {"tools": [run(command="touch b.txt")]}, {"text": "Over."}],
            ("failed", "out_of_budget"),
        ),
        "timeout": (
            {"user_prompts": ["Work"], "runner": free, "timeout": "60s"},
            [{"id": "none", "type": "file_not_exists", "path": "none"}],
            [{"tools": [run(command=STUBBORN)], "repeat": 30}],
            ("failed", "timed_out"),
        ),
        "resume": (
            {"user_prompts": ["Remember the word fig", "Which word?"], "runner": free},
            [{"id": "answer", "type": "contains", "text": "Fig"}],
            [{"text": "Noted."}, {"text": "Fig.", "expect_request": {"contains": "the word fig"}}],
            ("passed", "finished"),
        ),
    }


def processes():
    """Returns the processes of the run that are still alive."""
    found = []
    for folder in pathlib.Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            try:
                command = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            if MARK.encode() in command:
                found.append(command.replace(b"\0", b" ").decode(errors="replace").strip())
    return found


def trial(program, folder, name, agent, case, arguments):
    """Runs a case, and returns its trial as in the JSON report, and what the program printed."""
    scenario, assertions, steps, _ = case
    scenario = {
        "scenario": name,
        "system_prompt": "Be brief.",
        "fixtures": {"git_init": True, "files_committed": [{"path": "README.md", "content": "one\ntwo\n"}]},
        **scenario,
        "assertions": assertions,
    }
    scenario["runner"] = {**scenario["runner"], "model": f"scripted:{name}-model.yaml"}
    project = {"agents": {"one": {"type": agent, **({"resume": True} if name == "resume" else {})}}}
    for file, content in ((f"{name}-model", {"steps": steps + LATER}), (name, scenario), ("trialrun", project)):
        (folder / f"{file}.yaml").write_text(json.dumps(content))
    command = [program, "run", f"{name}.yaml", "--agent", "one", "--state", "state", "--report", "json=report.json",
               "--report", "terminal", *arguments]
    done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=900)
    report = folder / "report.json"
    trials = json.loads(report.read_text())["trials"] if report.exists() else [{"outcome": "not run"}]
    return trials[0], done.stdout + done.stderr


def main():
    program, folder, *agents = sys.argv[1:]
    only = os.environ.get("CONTRACT_CASES", "").split()
    shutil.rmtree(folder, ignore_errors=True)
    wrong = 0
    for agent in agents:
        for name, case in cases(AGENTS[agent]).items():
            if (agent, name) in SKIPPED:
                print(f"{agent:13} {name:8} skipped: {SKIPPED[agent, name]}")
                continue
            for kind, arguments in SANDBOXES[name if name in SANDBOXES else "others"]:
                if only and name not in only:
                    continue
                at = pathlib.Path(folder, agent, f"{name}-{kind}")
                at.mkdir(parents=True)
                seen, shown = trial(program, at, name, agent, case, arguments)
                ending = (seen.get("ending") or {}).get("kind")
                left = processes()
                expected = OTHERWISE.get((agent, name), case[3])
                is_right = (seen["outcome"], ending) == expected and not left
                print(f"{agent:13} {kind:9} {name:8} {seen['outcome']:9} {ending} {'' if is_right else 'WRONG'}", flush=True)
                if not is_right:
                    wrong += 1
                    print(shown[-4000:], f"expected: {expected}", f"still alive: {left}", sep="\n", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
