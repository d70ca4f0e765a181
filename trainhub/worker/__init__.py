"""The hub's worker and beat outlive whatever the broker answers.

Celery itself tries again after a lost connection, but ends the worker, or beat, at an answer that is an
error: a broker that is busy with a script, full, read-only, or that refuses a command for a while. Only the
worker's process loads these modules."""
