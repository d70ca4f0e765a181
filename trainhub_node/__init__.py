"""Floor 1, the other machine: what a node runs. It meets the hub only in `trainhub_launch` values.

Two kinds of modules live here. `bare`, `child`, `keeping`, `rank`, `environments`, `stopping`, `proc`,
`records` and `rundir` run under `python -I -S` beside training: standard library only, and on the way to
a rank's first line nothing that takes milliseconds to import (json, re, signal's enums, subprocess).
The others are the agent.
"""

__version__ = "0.1.0"
