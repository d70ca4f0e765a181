"""Renders pages of a hub with many workspaces, one for each line on standard input: a process of its own,
started by bench.many_workspaces."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "trainhub.settings")
django.setup()

from django.test import Client  # noqa: E402 - only now are the models there

from bench.many_workspaces.workspace_filler import OPERATOR, OWNER, VIEWED, fill_workspaces  # noqa: E402
from workspaces.models import User, Workspace  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("workspaces", "people", "runs"):
        parser.add_argument(f"--{name}", type=int, required=True)
    options = parser.parse_args()
    if not Workspace.objects.filter(slug=VIEWED).exists():
        fill_workspaces(options.workspaces, people=options.people, runs=options.runs)
    clients = {}
    for name in (OWNER, OPERATOR):
        clients[name] = Client()
        clients[name].force_login(User.objects.get(username=name))
    _answer({"ready": True})
    for line in sys.stdin:
        request = json.loads(line)
        _answer(_load(clients[request["who"]], request["path"], request["count"]))


def _load(client: Client, path: str, count: int) -> dict[str, float]:
    """Returns the CPU seconds of a load, the mean of so many, and status and bytes of one more."""
    answer = client.get(path)
    started = time.process_time()
    for _ in range(count):
        client.get(path)
    cpu_s = time.process_time() - started
    return {
        "status": answer.status_code,
        "cpu_s": cpu_s / max(1, count),
        "bytes": len(answer.content),
    }


def _answer(content: dict[str, float]) -> None:
    print(json.dumps(content), flush=True)


if __name__ == "__main__":
    main()
