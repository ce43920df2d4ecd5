"""An agent of Google's Agent Development Kit, with its own spans."""

import asyncio
import os
import sys

import setup_tracing
from orders import find_order

setup_tracing.export()
os.environ["GOOGLE_API_KEY"] = "none"
os.environ["GOOGLE_GEMINI_BASE_URL"] = os.environ["MODEL"]

from google.adk.agents import Agent
from google.adk.runners import InMemoryRunner
from google.genai import types


async def main():
    agent = Agent(name="orders", model="gemini-scripted", instruction="Find orders.", tools=[find_order])
    runner = InMemoryRunner(agent, app_name="orders")
    session = await runner.session_service.create_session(app_name="orders", user_id="user")
    message = types.Content(role="user", parts=[types.Part(text=sys.stdin.read())])
    async for event in runner.run_async(user_id="user", session_id=session.id, new_message=message):
        if event.is_final_response():
            print(event.content.parts[0].text)


asyncio.run(main())
