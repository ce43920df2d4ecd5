"""Orders in memory."""

ORDERS = {"A-17": {"total": 40, "state": "shipped"}}
REFUNDS = {}


class Shop:
    products = [{"name": "red shoes"}]
