"""Wheels of this project that the hub builds from its own sources and serves: to nodes, and to the machines
of people."""
