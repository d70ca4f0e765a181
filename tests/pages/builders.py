"""Runs in every state that a page can meet, made by the road that real ones take."""

from __future__ import annotations

from pathlib import Path

from django.test import Client

from jobs.models import Run
from tests.jobs.builders import Played, alive, ended, launched, node, processes
from trainhub_launch.report import OutputFile
from workspaces.access import Principal
from workspaces.stored_files import blob_writer

TRACEBACK = b"""step 1
Traceback (most recent call last):
  File "train.py", line 3, in <module>
    boom()
ValueError: no <b>batch</b> left
"""
HTMX = {"HX-Request": "true"}
LOGS = ("70_driver_log_0.txt", "70_driver_log_1.txt")


def text_of(client: Client, address: str, **headers: str) -> str:
    response = client.get(address, headers=headers)
    assert response.status_code == 200, f"{address}: {response.status_code}"
    return response.content.decode()


def started(who: Principal, name: str = "digits") -> tuple[Played, Run]:
    """A run of two ranks on a node that is played by hand."""
    alpha = Played(node("alpha"))
    run = launched(who, distribution=processes(2), display_name=name, arguments=["--rank", "$RANK"])
    alpha.claim(run)
    return alpha, run


def running(who: Principal, name: str = "digits") -> tuple[Played, Run]:
    alpha, run = started(who, name)
    alpha.tell(run, "running", alive(0), alive(1))
    alpha.log(run, LOGS[0], 0, b"\x1b[32mepoch 1\x1b[0m\nepoch 2 loss=0.5\n")
    return alpha, run


def failed(who: Principal, name: str = "digits") -> Run:
    """Rank 1 raised; rank 0 was ended with it."""
    alpha, run = running(who, name)
    alpha.log(run, LOGS[1], 0, TRACEBACK)
    alpha.tell(run, "done", ended(0, None, signal=15, ended_by_us=True), ended(1, 1))
    run.refresh_from_db()
    return run


def completed(who: Principal, folder: Path, name: str = "digits") -> Run:
    """With one output, model.pt."""
    alpha, run = running(who, name)
    file = folder / "model.pt"
    file.write_bytes(b"weights")
    output = OutputFile("model.pt", 7, blob_writer.store_file(file))
    alpha.tell(run, "done", ended(0), ended(1), outputs=(output,))
    run.refresh_from_db()
    return run
