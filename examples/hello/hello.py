"""The smallest run: no packages, no data, one process.

It shows three things that every training script on TrainHub can rely on:
its output is the live log, files below `outputs/` are kept, and the
environment variable TRAINHUB_RUN_ID contains the id of the run.
"""

import argparse
import json
import os
import pathlib
import platform
import time

parser = argparse.ArgumentParser()
parser.add_argument("--seconds", type=float, default=5.0, help="how long to pretend to work")
args = parser.parse_args()

print(f"Hello from {platform.node()}, Python {platform.python_version()}")
print(
    f"This is attempt {os.environ.get('TRAINHUB_ATTEMPT', '?')} of run "
    f"{os.environ.get('TRAINHUB_RUN_ID', 'none (by hand)')}"
)

started = time.monotonic()
steps = 10
for step in range(1, steps + 1):
    time.sleep(args.seconds / steps)
    print(f"step {step}/{steps}  {time.monotonic() - started:.1f} s")

# The working folder is a fresh copy of the source; what lies in its `outputs/` is kept with the run.
outputs = pathlib.Path("outputs")
outputs.mkdir(exist_ok=True)
(outputs / "model.json").write_text(json.dumps({"answer": 42, "trained_for_seconds": args.seconds}))
print("Wrote outputs/model.json")
