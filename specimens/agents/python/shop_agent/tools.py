"""Tools of the shop agent. You must not read this as a rule for the agent."""

from typing import Annotated, Literal, Optional

from agents import RunContextWrapper, function_tool
from pydantic import BaseModel, Field

from .data import ORDERS, REFUNDS, Shop


class ReturnRequest(BaseModel):
    order_id: str = Field(description="Number of the order")
    reason: Literal["damaged", "wrong", "other"]
    pieces: int = 1
    photo_url: Optional[str] = None


@function_tool
async def get_order(context: RunContextWrapper[Shop], order_id: str) -> dict:
    """Find an order by its number.

    Args:
        order_id: Number of the order, such as A-17.
    """
    return ORDERS[order_id]


@function_tool(name_override="refund_order", description_override="Refund an order. Never refund an order twice.")
def refund(order_id: str, amount: Annotated[float, "Amount in EUR"], note: str | None = None) -> str:
    if order_id in REFUNDS:
        raise ValueError("already refunded")
    REFUNDS[order_id] = amount
    return f"refunded {amount}"


def search_products(
    query: str,
    tags: list[str],
    limit: int = 10,  # at most 50
) -> list[dict]:
    """Search the catalogue, by words and tags."""
    return [product for product in Shop.products if query in product["name"]][:limit]


RETURN_TOOL = {
    "type": "function",
    "function": {
        "name": "create_return",
        "description": "Create a return label.",
        "parameters": ReturnRequest.model_json_schema(),
    },
}

ESCALATE_TOOL = {
    "type": "function",
    "function": {
        "name": "escalate",
        "description": (
            "Hand the conversation over "
            "to a person."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "summary": {"type": "string", "description": "What the customer wants"},
                "urgent": {"type": "boolean"},
            },
            "required": ["summary"],
        },
    },
}
