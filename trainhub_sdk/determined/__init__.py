"""Experiments of Determined AI: their configurations become specs, and their Core API runs in jobs.

`experiment` reads a configuration; `job` is what scripts import in the run as `determined`."""
