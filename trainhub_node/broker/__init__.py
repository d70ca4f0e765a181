"""The node's side of the broker: how it connects, and which certificates it trusts."""
