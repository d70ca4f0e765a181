"""Searches of hyperparameters: a hub has none, so the process that submits one runs it."""
