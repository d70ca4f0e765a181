"""Logging to a run: from the processes of a job, and from outside to a run that a script has opened."""
