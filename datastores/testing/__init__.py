"""Tests of datastores: whether the hub can read one, and how fast. Those of the nodes are in `jobs`."""
