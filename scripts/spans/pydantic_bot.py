"""An agent of Pydantic AI, with its own spans."""

import os
import sys

import setup_tracing
from orders import find_order
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

setup_tracing.export()
Agent.instrument_all()
model = OpenAIChatModel("scripted-1", provider=OpenAIProvider(base_url=os.environ["MODEL"] + "/v1", api_key="none"))
print(Agent(model, tools=[find_order], name="orders").run_sync(sys.stdin.read()).output)
