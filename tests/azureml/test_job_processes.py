"""Whole processes of jobs: their ends, their children, what they import, and none of a job."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.azureml.stub_hub import RUN, StubHub
from trainhub_azureml.exceptions import RunEnvironmentException

PROJECT = Path(__file__).resolve().parent.parent.parent
BEGIN = "from azureml.core import Run\nrun = Run.get_context()\n"


def process(hub: StubHub, text: str, **variables: str) -> subprocess.Popen[str]:
    """A process of a job, with the names on its path as a node has them."""
    path = f"{PROJECT / 'trainhub_azureml' / 'names'}:{PROJECT}"
    env = {**os.environ, "PYTHONPATH": path, "TRAINHUB_RUN_ID": RUN, "TRAINHUB_URL": hub.url}
    return subprocess.Popen(
        [sys.executable, "-c", BEGIN + text],
        env={**env, "TRAINHUB_TOKEN": "t", **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


class TestEnds:
    def test_everything_is_sent_when_the_process_ends(self, stub_hub: StubHub) -> None:
        text = "for i in range(3000): run.log('x', i)\nrun.log_row('r', a=1)\n"
        started = process(stub_hub, text)
        assert started.communicate(timeout=60) == ("", "")
        assert started.returncode == 0
        assert len([1 for key, _, _ in stub_hub.metrics if key == "x"]) == 3000

    def test_sigterm_sends_what_waits_and_ends_the_process(self, stub_hub: StubHub) -> None:
        started = process(stub_hub, "run.log('x', 1)\nprint('go', flush=True)\nimport time\ntime.sleep(60)\n")
        assert started.stdout is not None
        assert started.stdout.readline() == "go\n"
        started.terminate()
        started.communicate(timeout=60)
        assert started.returncode == -signal.SIGTERM
        assert stub_hub.metrics == [("x", 1.0, 0)]

    def test_a_hub_that_is_away_costs_one_line_and_no_exception(self, stub_hub: StubHub) -> None:
        text = "from trainhub_sdk.job import sender\nsender.EXIT_S = 1\nrun.log('x', 1)\nrun.log('y', 'z')\n"
        begin = time.monotonic()
        started = process(stub_hub, text, TRAINHUB_URL="http://127.0.0.1:9")
        output, errors = started.communicate(timeout=60)
        assert (output, started.returncode, errors.count("\n")) == ("", 0, 1)
        assert errors.startswith(
            "TrainHub: 2 logged values did not reach the hub: The hub at http://127.0.0.1:9"
        )
        assert time.monotonic() - begin < 40

    def test_children_of_a_fork_log_for_themselves(self, stub_hub: StubHub) -> None:
        text = """
import os
run.log('parent', 1)
child = os.fork()
run.log('child' if child == 0 else 'parent', 2)
run.flush()
if child == 0:
    os._exit(0)
os.waitpid(child, 0)
"""
        started = process(stub_hub, text)
        started.communicate(timeout=60)
        counts = sorted((key, value) for key, value, _ in stub_hub.metrics)
        assert counts == [("child", 2.0), ("parent", 1.0), ("parent", 2.0)]


class TestImport:
    def test_a_job_loads_no_http_client_before_it_logs(self, stub_hub: StubHub) -> None:
        text = (
            "import sys\nprint(sorted({'ssl', 'http.client', 'typing', 'json', 'uuid'} & set(sys.modules)))\n"
        )
        started = process(stub_hub, text)
        assert started.communicate(timeout=60) == ("[]\n", "")


class TestOffline:
    def test_outside_a_job_it_prints(self, names: None, capsys: pytest.CaptureFixture[str]) -> None:
        from azureml.core.run import Run as NamedRun  # type: ignore[import-not-found]
        from azureml.core.run import _OfflineRun

        run = NamedRun.get_context()
        run.log("loss", 0.5)
        run.log("loss", 0.25)
        run.log_row("r", a=1)
        assert type(run) is _OfflineRun
        assert run.id.startswith("OfflineRun")
        assert not hasattr(run, "experiment")
        assert run.get_metrics() == {"loss": [0.5, 0.25], "r": {"a": [1]}}
        assert capsys.readouterr().out.startswith("loss: 0.5\nloss: 0.25\n")
        with pytest.raises(RunEnvironmentException, match="part of no run"):
            NamedRun.get_context(allow_offline=False)
