"""Runs a skill evaluation with Gemini CLI, and compares what its two arms send to the model: they differ only by the skill.
Usage: arms.py PROGRAM FOLDER; `gemini` is on the PATH. FOLDER is emptied."""

import difflib
import http.server
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading

SKILL = "zebra-notes"
ANSWER = {
    "candidates": [{"content": {"role": "model", "parts": [{"text": "Done."}]}, "finishReason": "STOP", "index": 0}],
    "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
}


class Model(http.server.BaseHTTPRequestHandler):
    """A model that answers `Done.` and keeps the requests."""

    requests = []

    def do_POST(self):
        self.requests.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        body = f"data: {json.dumps(ANSWER)}\n\n".encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def lines(request):
    """Returns a request as lines, without what differs in each trial."""
    text = json.dumps(request, indent=0, ensure_ascii=False).replace("\\n", "\n")
    return re.sub(r"/tmp/trialrun-sandbox-[0-9a-z-]+", "SANDBOX", text).splitlines()


def main():
    program, folder = sys.argv[1:]
    shutil.rmtree(folder, ignore_errors=True)
    skill = pathlib.Path(folder, "skills", SKILL)
    (skill / "evals").mkdir(parents=True)
    (skill / "SKILL.md").write_text(f"---\nname: {SKILL}\ndescription: Writes notes.\n---\nWrite notes.\n")
    case = {"id": "one", "prompt": "Say done", "assertions": [{"type": "file_contains", "contains": "Done"}]}
    (skill / "evals" / "evals.json").write_text(json.dumps({"skill_name": SKILL, "evals": [case]}))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    variables = {"GEMINI_API_KEY": "sk-test", "GOOGLE_GEMINI_BASE_URL": f"http://127.0.0.1:{server.server_port}"}
    command = [program, "run", f"skills/{SKILL}", "--agent", "gemini", "--model", "gemini-2.5-pro", "--jobs", "1"]
    environment = {**os.environ, **variables, "CI": "1"}
    code = subprocess.run(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL).returncode
    if code != 0:
        print(f"exit code {code}; both arms pass")
        return 1
    arms = sorted((lines(request) for request in Model.requests), key=lambda arm: SKILL not in "\n".join(arm))
    if len(arms) != 2 or SKILL in "\n".join(arms[1]):
        print(f"{len(arms)} requests; one with the skill and one without it expected")
        return 1
    changes = difflib.SequenceMatcher(a=arms[0], b=arms[1], autojunk=False).get_opcodes()
    changes = ["\n".join(arms[0][a:b]) + f"\n→ {arms[1][c:d]}" for kind, a, b, c, d in changes if kind != "equal"]
    others = [change for change in changes if SKILL not in change]
    print(f"{len(changes)} differences between the arms, {len(others)} of them not by the skill", *others, sep="\n")
    return 1 if others else 0


if __name__ == "__main__":
    sys.exit(main())
