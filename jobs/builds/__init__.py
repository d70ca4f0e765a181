"""Builds of environments that people order on nodes before a run needs them."""
