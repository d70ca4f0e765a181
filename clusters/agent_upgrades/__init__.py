"""Versions of the node program: which node runs which, and the orders to run another one."""
