"""Anthropic's library, with OpenLLMetry."""

import os
import sys

import setup_tracing
from orders import PARAMETERS, run

setup_tracing.export()
from opentelemetry.instrumentation.anthropic import AnthropicInstrumentor

AnthropicInstrumentor().instrument()

from anthropic import Anthropic

client = Anthropic(base_url=os.environ["MODEL"], api_key="none")
tool = {"name": "find_order", "description": "Finds an order.", "input_schema": PARAMETERS}
messages = [{"role": "user", "content": sys.stdin.read()}]
while True:
    answer = client.messages.create(model="scripted-1", max_tokens=100, messages=messages, tools=[tool])
    messages.append({"role": "assistant", "content": [part.model_dump(exclude_none=True) for part in answer.content]})
    calls = [part for part in answer.content if part.type == "tool_use"]
    if not calls:
        break
    results = [{"type": "tool_result", "tool_use_id": call.id, "content": run(call.input)} for call in calls]
    messages.append({"role": "user", "content": results})
print(answer.content[0].text)
