"""The tool of the bots, and the loop of those whose library has none."""

import json


def find_order(number: int) -> str:
    """Finds an order by its number."""
    return f"order {number}: sent"


PARAMETERS = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}


def run(arguments) -> str:
    return find_order(**(json.loads(arguments) if isinstance(arguments, str) else arguments))
