"""Locked environments on nodes: installing them beside pip by hand."""
