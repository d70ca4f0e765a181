"""The node's side of the broker: how a connection is made, and to whom it is trusted."""
