"""Requests of nodes that one of several web servers answers: the one that has the node's session."""
