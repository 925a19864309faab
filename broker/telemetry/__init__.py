"""Metrics that clients push (KIP-714): who is to push which, and what they have pushed.

`subscriptions` says what administrators want of which clients, `client_metrics` keeps the clients
and their newest values, `otlp` reads what they send. What is kept is bounded in every direction,
for any client may push anything. Nothing here is imported before the first such request.
"""
