"""OpenAI's library. The argument is the instrumentation: `openinference`, `official` or `openllmetry`."""

import os
import sys

import setup_tracing
from orders import PARAMETERS, run

provider = setup_tracing.export()
if sys.argv[1] == "openinference":
    from openinference.instrumentation.openai import OpenAIInstrumentor
elif sys.argv[1] == "official":
    from opentelemetry.instrumentation.openai_v2 import OpenAIInstrumentor
else:
    from opentelemetry.instrumentation.openai import OpenAIInstrumentor
OpenAIInstrumentor().instrument()

from openai import OpenAI

client = OpenAI(base_url=os.environ["MODEL"] + "/v1", api_key="none")
function = {"name": "find_order", "description": "Finds an order.", "parameters": PARAMETERS}
tool = {"type": "function", "function": function}
messages = [{"role": "user", "content": sys.stdin.read()}]
while True:
    answer = client.chat.completions.create(model="scripted-1", messages=messages, tools=[tool]).choices[0].message
    messages.append(answer.model_dump(exclude_none=True))
    if not answer.tool_calls:
        break
    for call in answer.tool_calls:
        messages.append({"role": "tool", "tool_call_id": call.id, "content": run(call.function.arguments)})
print(answer.content)
