"""Keeps the hub's worker and beat running whatever the broker answers.

Celery itself tries again after a lost connection, but an answer that is an error ends the worker or beat: the
broker may be busy with a script, full, read-only, or refuse a command for a while. Only the worker's process
loads these modules."""
