"""Functions as agents, with several trials at a time. They return only text; what they did is known from the spans of
OpenAI's library. The program has no tracer provider of its own."""

import os
import sys

import trialrun
from openai import AsyncOpenAI, OpenAI
from openinference.instrumentation.openai import OpenAIInstrumentor
from orders import PARAMETERS, run

OpenAIInstrumentor().instrument()
settings = {"base_url": os.environ["MODEL"] + "/v1", "api_key": "none"}
TOOLS = [{"type": "function", "function": {"name": "find_order", "parameters": PARAMETERS}}]


def request(messages):
    return {"model": "scripted-1", "messages": messages, "tools": TOOLS}


def results(messages, answer):
    """Adds the answer and the results of its calls, if it has calls."""
    messages.append(answer.model_dump(exclude_none=True))
    for call in answer.tool_calls or []:
        messages.append({"role": "tool", "tool_call_id": call.id, "content": run(call.function.arguments)})
    return bool(answer.tool_calls)


@trialrun.agent(costs=False, traces="otlp")
def plain(message):
    client, messages = OpenAI(**settings), [{"role": "user", "content": str(message)}]
    while True:
        answer = client.chat.completions.create(**request(messages)).choices[0].message
        if not results(messages, answer):
            return answer.content


@trialrun.agent(costs=False, traces="otlp")
async def awaited(message):
    client, messages = AsyncOpenAI(**settings), [{"role": "user", "content": str(message)}]
    while True:
        answer = (await client.chat.completions.create(**request(messages))).choices[0].message
        if not results(messages, answer):
            return answer.content


finished = trialrun.run("orders.yaml", agent=[plain, awaited], trials=4, jobs=8)
print(finished.text)
sys.exit(finished.exit_code)
