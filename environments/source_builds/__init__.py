"""Packages that have no wheel: what a node needs to know to build one from the source distribution, once, and
what the hub does with the result. None of their code runs on the hub."""
