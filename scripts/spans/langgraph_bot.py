"""An agent of LangChain, on LangGraph, with OpenInference."""

import os
import sys

import setup_tracing
from orders import find_order

setup_tracing.export()
from openinference.instrumentation.langchain import LangChainInstrumentor

LangChainInstrumentor().instrument()

from langchain.agents import create_agent
from langchain_openai import ChatOpenAI

model = ChatOpenAI(model="scripted-1", base_url=os.environ["MODEL"] + "/v1", api_key="none")
agent = create_agent(model, tools=[find_order])
print(agent.invoke({"messages": [{"role": "user", "content": sys.stdin.read()}]})["messages"][-1].content)
