"""How runs end: canceled, failed, killed, out of time; no process is left, and the page leads with the
cause."""

from __future__ import annotations

import pytest

from tests.hub import eventually
from tests.journeys.runs import Runs, alive

pytestmark = pytest.mark.slow
TWO = {"type": "pytorch", "communication_backend": "gloo", "process_count": 2, "node_count": 1}
FAMILY = """
import os, signal, subprocess, sys, time
deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
child = subprocess.Popen([sys.executable, "-c", deaf])
strayed = subprocess.Popen([sys.executable, "-c", deaf], start_new_session=True)
print("family", os.getpid(), child.pid, strayed.pid, flush=True)
{then}
"""

SAVING = """
import os, time
os.makedirs("outputs", exist_ok=True)
open("outputs/half.txt", "w").write("half")
print("saved", flush=True)
time.sleep(600)
"""
RAISING = """
import os, time
if os.environ["RANK"] == "1":
    raise ValueError("the data is not what it seems")
time.sleep(600)
"""
SECOND_TIME_LUCKY = """
import os, sys
print("attempt", os.environ["TRAINHUB_ATTEMPT"], flush=True)
sys.exit(os.environ["TRAINHUB_ATTEMPT"] == "1")
"""


def family(runs: Runs, run: str) -> list[int]:
    line = next(line for line in runs.says(run, b"family ").splitlines() if line.startswith(b"family "))
    eventually(lambda: runs.log(run).endswith(b"\n"))
    return [int(word) for word in line.split()[1:]]


class TestCancel:
    def test_ends_every_process_within_the_grace(self, runs: Runs) -> None:
        run = runs.script(FAMILY.format(then="time.sleep(600)"), limits={"grace_s": 1})
        pids = family(runs, run)
        assert runs.client.post(f"/api/v1/runs/{run}/cancel/").is_success
        ended = runs.ended(run, 15)
        assert ended["state"] == "Canceled"
        assert ended["sentence"] == "Canceled by admin."
        assert not [pid for pid in pids if alive(pid)]

    def test_a_canceled_run_keeps_its_log_and_outputs(self, runs: Runs) -> None:
        run = runs.script(SAVING)
        runs.says(run, b"saved")
        runs.client.post(f"/api/v1/runs/{run}/cancel/")
        assert runs.ended(run, 30)["state"] == "Canceled"
        assert runs.outputs(run) == ["half.txt"]


def test_children_that_outlive_their_script_are_ended(runs: Runs) -> None:
    run = runs.script(FAMILY.format(then="sys.exit(0)"), limits={"grace_s": 1})
    pids = family(runs, run)
    assert runs.ended(run, 30)["state"] == "Completed"
    assert not [pid for pid in pids if alive(pid)]


def test_one_failed_rank_ends_the_gang_and_the_page_leads_with_it(runs: Runs) -> None:
    run = runs.script(RAISING, distribution=TWO, limits={"grace_s": 1})
    ended = runs.ended(run, 30)
    assert ended["state"] == "Failed"
    assert ended["sentence"].startswith("Rank 1 exited with code 1")
    assert [member["state"] for member in runs.members(run)] == ["Stopped", "Failed"]
    page = page_of(runs, ended["number"])
    log = page.index('data-mount="log-view"')
    assert page.index("Rank 1 exited with code 1") < log
    assert page.index("ValueError: the data is not what it seems") < log


def page_of(runs: Runs, number: int) -> str:
    with runs.hub.client("") as browser:
        form = browser.get("/sign-in/")
        token = form.cookies[runs.hub.cookie("csrftoken")]
        data = {"username": "admin", "password": runs.hub.password, "csrfmiddlewaretoken": token}
        assert browser.post("/sign-in/", data=data).status_code == 302
        return browser.get(f"/runs/{number}/logs/").text


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("import sys; sys.exit(3)", "Rank 0 exited with code 3"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "Rank 0 was killed by SIGSEGV"),
    ],
)
def test_a_failed_script_is_told_as_it_failed(runs: Runs, text: str, sentence: str) -> None:
    ended = runs.ended(runs.script(text))
    assert ended["state"] == "Failed"
    assert ended["sentence"].startswith(sentence)


def test_a_run_over_its_time_limit_is_stopped(runs: Runs) -> None:
    ended = runs.ended(runs.script("import time; time.sleep(600)", limits={"timeout_s": 1, "grace_s": 1}), 30)
    assert (ended["state"], ended["sentence"]) == ("Failed", "Stopped after its time limit of 1 s.")


def test_a_failed_run_with_retries_runs_again_as_a_new_attempt(runs: Runs) -> None:
    run = runs.script(SECOND_TIME_LUCKY, limits={"retries": 1})
    ended = runs.ended(run, 30)
    assert (ended["state"], ended["attempt"]) == ("Completed", 2)
    assert runs.log(run) == b"attempt 2\n"
    assert (
        runs.client.get(f"/api/v1/runs/{run}/logs/70_driver_log.txt", params={"attempt": 1}).content
        == b"attempt 1\n"
    )


class TestLogs:
    def test_bytes_that_are_not_text_survive(self, runs: Runs) -> None:
        run = runs.script("import sys; sys.stdout.buffer.write(bytes(range(256)) * 40)")
        runs.ended(run)
        assert runs.log(run) == bytes(range(256)) * 40

    def test_a_gigabyte_arrives_whole(self, runs: Runs) -> None:
        text = (
            "import sys\nblock = (b'y' * 127 + b'\\n') * 8192\nfor _ in range(1000):\n    "
            "sys.stdout.buffer.write(block)\n"
        )
        run = runs.script(text)
        assert runs.ended(run, 180)["state"] == "Completed"
        entry = next(
            entry for entry in runs.get(f"/runs/{run}/logs/")["logs"] if entry["name"] == "70_driver_log.txt"
        )
        assert entry["size"] == 1000 * 8192 * 128
        tail = runs.client.get(
            f"/api/v1/runs/{run}/logs/70_driver_log.txt", params={"offset": entry["size"] - 128}
        )
        assert tail.content == b"y" * 127 + b"\n"
        assert runs.client.delete(f"/api/v1/runs/{run}/").is_success
        # The gigabyte shall not lie there for a month.
        assert runs.client.post(f"/api/v1/runs/{run}/purge/").is_success
