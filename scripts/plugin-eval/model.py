"""A scripted model on loopback for two runners: the Messages API of Anthropic, streamed. `[script: NAME]` in the
user's message names the steps of the answer."""

import json
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def call(tool, **arguments):
    return {"calls": [{"tool": tool, "input": arguments}]}


SCRIPTS = {
    "answer": [{"text": "We meet at the lake. Bring bread and a second loaf of bread."}],
    "skill": [call("Skill", skill="picnics:plan"), {"text": "We meet at the lake."}],
    "write": [call("Write", file_path="plan.md", content="At the lake.\n"), {"text": "The plan is in plan.md."}],
    "read": [call("Read", file_path="plan.md"), call("Glob", pattern="*"), {"text": "There is no plan."}],
    "wrong-tool": [call("Frobnicate", value=1), {"text": "We meet at the lake."}],
    "http-500": [{"status": 500}],
    "slow": [{"delay": 8, "text": "We meet at the lake."}],
    "refusal": [{"text": "I cannot help with that.", "stop": "refusal"}],
    "loop": [call("Glob", pattern="*")],
}


def texts(content):
    if isinstance(content, str):
        return content
    return "\n".join(block.get("text", "") for block in content if block.get("type") == "text")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.reply(200, {})

    do_HEAD = do_GET

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        said = "\n".join(texts(message["content"]) for message in body["messages"])
        found = re.search(r"\[script: ([\w-]+)\]", said)
        steps = SCRIPTS[found.group(1)] if found else SCRIPTS["answer"]
        done = sum(message["role"] == "assistant" for message in body["messages"])
        step = steps[min(done, len(steps) - 1)]
        if "status" in step:
            self.reply(step["status"], {"type": "error", "error": {"type": "api_error", "message": "scripted"}})
            return
        time.sleep(step.get("delay", 0))
        blocks = [{"type": "text", "text": step["text"]}] if "text" in step else []
        for index, asked in enumerate(step.get("calls", [])):
            blocks.append(
                {"type": "tool_use", "id": f"toolu_{done}_{index}", "name": asked["tool"], "input": asked["input"]}
            )
        stop = step.get("stop") or ("tool_use" if step.get("calls") else "end_turn")
        message = {
            "id": f"msg_{done}",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 100, "output_tokens": 1},
        }
        if not body.get("stream"):
            self.reply(200, {**message, "content": blocks, "stop_reason": stop})
            return
        events = [("message_start", {"message": message})]
        for index, block in enumerate(blocks):
            if block["type"] == "text":
                start, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": block["text"]}
            else:
                start = {**block, "input": {}}
                delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            events.append(("content_block_start", {"index": index, "content_block": start}))
            events.append(("content_block_delta", {"index": index, "delta": delta}))
            events.append(("content_block_stop", {"index": index}))
        events.append(
            ("message_delta", {"delta": {"stop_reason": stop, "stop_sequence": None}, "usage": {"output_tokens": 20}})
        )
        events.append(("message_stop", {}))
        lines = (f"event: {kind}\ndata: {json.dumps({'type': kind, **rest})}\n\n" for kind, rest in events)
        self.send("text/event-stream", 200, "".join(lines).encode())

    def reply(self, status, value):
        self.send("application/json", status, json.dumps(value).encode())

    def send(self, kind, status, data):
        try:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data)))
            self.send_header("request-id", "req_1")
            self.end_headers()
            self.wfile.write(data)
        except ConnectionError:
            # The agent was stopped.
            pass


def start():
    """Starts the model and returns its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_address[1]}"
