"""A bot that is not instrumented."""

print("Order 7 was sent.")
