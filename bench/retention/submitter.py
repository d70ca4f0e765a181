"""Begins runs one after the other, under the workspace's lock as every submission, until its standard input
ends; prints how long each took in seconds, as JSON: a process of its own."""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import time

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "trainhub.settings")
django.setup()

from jobs import external  # noqa: E402 - only now are the settings there
from jobs.models import Experiment  # noqa: E402
from workspaces.models import User, Workspace  # noqa: E402

PAUSE_S = 0.02


def main() -> None:
    # Nobody listens to the live messages here.
    logging.getLogger("live.publish").setLevel(logging.ERROR)
    workspace = Workspace.objects.get(slug="bench")
    user, _ = User.objects.get_or_create(username="bench")
    experiment, _ = Experiment.objects.get_or_create(workspace=workspace, name="submitted")
    ending = threading.Event()
    threading.Thread(target=_await_end, args=(ending,), daemon=True).start()
    took = []
    while not ending.is_set():
        started = time.monotonic()
        external.create_run(experiment, user, external.ExternalRunStart("bench"))
        took.append(time.monotonic() - started)
        time.sleep(PAUSE_S)
    print(json.dumps(took))


def _await_end(ending: threading.Event) -> None:
    sys.stdin.read()
    ending.set()


if __name__ == "__main__":
    main()
