from agents import Agent, Runner

from .tools import get_order, refund, search_products

SYSTEM_PROMPT = """You are the assistant of a small shop.

    Look up the order before you answer.
    Refunds above 100 EUR require the approval of a person.

    - Never promise a delivery date.
    - Do not talk about other customers.
"""

LIMITS = "Only answer questions about the shop. " "If you are not sure, escalate."

agent = Agent(
    name="Shop agent",
    model="gpt-4.1-mini",
    instructions=SYSTEM_PROMPT + LIMITS,
    tools=[get_order, refund, search_products],
)


def system_message(name: str) -> dict:
    return {"role": "system", "content": f"The customer is called {name}. Always greet them by name."}


if __name__ == "__main__":
    print(Runner.run_sync(agent, input("> ")).final_output)
