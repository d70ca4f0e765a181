"""Floor 0: values and pure functions that describe a training job, its placement and the processes to start.

Standard library only. The hub and the nodes both import this package and share no other code."""
