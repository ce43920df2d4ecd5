"""A scripted model on loopback, in the formats of OpenAI, Anthropic and Gemini. It asks for a tool call, and answers
once it has the result. Prints its port."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOOL, ARGUMENTS, ANSWER = "find_order", {"number": 7}, "Order 7 was sent."


def openai(request):
    has_result = any(message["role"] == "tool" for message in request["messages"])
    call = {"id": "call_1", "type": "function", "function": {"name": TOOL, "arguments": json.dumps(ARGUMENTS)}}
    said = {"content": ANSWER} if has_result else {"content": None, "tool_calls": [call]}
    message = {"role": "assistant", **said}
    choice = {"index": 0, "finish_reason": "stop" if has_result else "tool_calls", "message": message}
    usage = {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": request["model"], "choices": [choice],
            "usage": usage}


def anthropic(request):
    has_result = any("tool_result" in json.dumps(message["content"]) for message in request["messages"])
    call = {"type": "tool_use", "id": "call_1", "name": TOOL, "input": ARGUMENTS}
    content = [{"type": "text", "text": ANSWER}] if has_result else [call]
    usage = {"input_tokens": 20, "output_tokens": 5}
    reason = "end_turn" if has_result else "tool_use"
    return {"id": "m", "type": "message", "role": "assistant", "model": request["model"], "content": content,
            "stop_reason": reason, "stop_sequence": None, "usage": usage}


def gemini(request):
    has_result = "functionResponse" in json.dumps(request["contents"])
    part = {"text": ANSWER} if has_result else {"functionCall": {"name": TOOL, "args": ARGUMENTS}}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 20, "candidatesTokenCount": 5, "totalTokenCount": 25}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-scripted"}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        answers = [("/messages", anthropic), (":generateContent", gemini), ("/chat/completions", openai)]
        answer = next((answer for part, answer in answers if part in self.path), None)
        body = json.dumps(answer(request) if answer else {"error": {"message": f"no answer for {self.path}"}}).encode()
        self.send_response(200 if answer else 404)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
