"""Processes of runs that use the Core API by the name `determined`: their numbers, checkpoints and stops."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.azureml.stub_hub import RUN, StubHub, serving
from trainhub_sdk.determined.experiment import FILE_NAME, job_package

BEGIN = "import determined as det\n"


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that a run gets in its source."""
    path = tmp_path_factory.mktemp("source") / FILE_NAME
    path.write_bytes(job_package())
    return path


@pytest.fixture(scope="module")
def hub() -> Iterator[StubHub]:
    with serving() as stub:
        yield stub


class JobProcess:
    """Starts scripts as processes of the run, in its folder."""

    def __init__(self, archive: Path, hub: StubHub, folder: Path) -> None:
        self.folder = folder
        self.checkpoints = folder / "checkpoints"
        self.checkpoints.mkdir()
        self.hub = hub
        hub.batches.clear()
        own = {name: value for name, value in os.environ.items() if not name.startswith("TRAINHUB_")}
        self.variables = {
            **own,
            "PYTHONPATH": str(archive),
            "TRAINHUB_RUN_ID": RUN,
            "TRAINHUB_ATTEMPT": "1",
            "TRAINHUB_URL": hub.url,
            "TRAINHUB_TOKEN": "t",
            "TRAINHUB_CHECKPOINT_DIR": str(self.checkpoints),
            "TRAINHUB_STOP_FILE": str(folder / "stop"),
            "DET_HPARAMS": '{"lr": 0.1}',
            "DET_EXPERIMENT_CONFIG": '{"data": {"url": "x"}, "searcher": {"max_length": {"batches": 4}}}',
            "DET_SLOT_IDS": "[0, 1]",
        }

    def start(self, text: str, **variables: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", BEGIN + text],
            cwd=self.folder,
            env={**self.variables, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, text: str, **variables: str) -> str:
        """Returns what the script prints."""
        started = self.start(text, **variables)
        output, errors = started.communicate(timeout=60)
        assert started.returncode == 0, errors
        return output

    def refusal(self, text: str, **variables: str) -> str:
        """Returns the last line of a script that fails."""
        started = self.start(text, **variables)
        errors = started.communicate(timeout=60)[1]
        assert started.returncode == 1, errors
        return errors.splitlines()[-1]


@pytest.fixture
def job(archive: Path, hub: StubHub, tmp_path: Path) -> JobProcess:
    return JobProcess(archive, hub, tmp_path)


class TestReports:
    def test_metrics_become_curves_and_the_rest_tags(self, job: JobProcess) -> None:
        job.run("""
with det.core.init() as core:
    core.train.report_training_metrics(steps_completed=1, metrics={"loss": 0.5, "note": "x"})
    core.train.report_validation_metrics(2, {"loss": 0.25})
    core.train.report_metrics("test", 3, {"loss": 1, "a%b": 2})
    core.train.report_progress(0.5)
    core.train.set_status("warm")
    for operation in core.searcher.operations():
        operation.report_progress(1)
        operation.report_completed(0.25)
        print(operation.length, core.searcher.get_configured_units())
""")
        keys = {key: (value, step) for key, value, step in job.hub.metrics}
        assert keys.pop("training/loss") == (0.5, 1)
        assert keys.pop("validation/loss") == (0.25, 2)
        assert keys.pop("test/loss") == (1.0, 3)
        ((other, point),) = keys.items()
        assert (other.startswith("test/a_b_"), point) == (True, (2.0, 3))
        assert job.hub.tags == {"determined.progress": "1", "determined.status": "warm"}

    def test_the_run_describes_itself(self, job: JobProcess) -> None:
        output = job.run("""
info = det.get_cluster_info()
print(info.trial.hparams, info.user_data, info.slot_ids, info.container_rank, len(info.container_addrs))
print(info.latest_checkpoint, info.trial.trial_id == det.get_cluster_info().trial.trial_id)
""")
        assert output == "{'lr': 0.1} {'url': 'x'} [0, 1] 0 1\nNone True\n"

    def test_outside_of_runs_numbers_are_lines_of_the_log(self, job: JobProcess) -> None:
        text = """
import logging
logging.basicConfig(level=logging.INFO, format=det.LOG_FORMAT)
print(det.get_cluster_info())
with det.core.init(checkpoint_storage="kept") as core:
    core.train.report_training_metrics(1, {"loss": 0.5})
    with core.checkpoint.store_path() as (path, checkpoint):
        (path / "state").write_text("1")
    print(core.preempt.should_preempt())
"""
        started = job.start(text, TRAINHUB_RUN_ID="", TRAINHUB_CHECKPOINT_DIR="", TRAINHUB_STOP_FILE="")
        output, errors = started.communicate(timeout=60)
        assert output == "None\nFalse\n"
        assert "training metrics at step 1: {'loss': 0.5}" in errors
        assert len(list((job.folder / "kept").glob("*/state"))) == 1

    def test_only_rank_0_reports(self, job: JobProcess) -> None:
        text = "with det.core.init() as core:\n    core.train.report_progress(0.5)\n"
        refused = job.refusal(text, RANK="1", WORLD_SIZE="2", LOCAL_RANK="1", LOCAL_WORLD_SIZE="2")
        assert refused == "RuntimeError: Only rank 0 may report progress, and this is rank 1."

    def test_ranks_without_torch_cannot_exchange_values(self, job: JobProcess) -> None:
        text = "det.core.DistributedContext.from_torch_distributed().allgather(1)\n"
        ranks = {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "2"}
        assert "torch.distributed" in job.refusal(text, **ranks)
        assert "RANK, WORLD_SIZE, LOCAL_RANK not set" in job.refusal(text)


class TestCheckpoints:
    STORE = """
with det.core.init() as core:
    with core.checkpoint.store_path({"steps_completed": 3}) as (path, checkpoint):
        (path / "state").write_text("three")
    print(checkpoint, det.get_cluster_info().latest_checkpoint)
"""

    def test_a_checkpoint_has_both_signs_of_being_whole(self, job: JobProcess) -> None:
        checkpoint, latest = job.run(self.STORE).split()
        assert latest == "None"
        assert [path.name for path in job.checkpoints.iterdir()] == [checkpoint]
        files = {path.name for path in (job.checkpoints / checkpoint).iterdir()}
        assert files == {"state", "metadata.json", ".complete"}

    def test_the_next_attempt_goes_on_with_the_newest(self, job: JobProcess) -> None:
        job.run(self.STORE)
        checkpoint = job.run(self.STORE).split()[0]
        output = job.run(
            """
info = det.get_cluster_info()
with det.core.init() as core:
    with core.checkpoint.restore_path(info.latest_checkpoint) as path:
        print(info.latest_checkpoint, (path / "state").read_text())
    print(core.checkpoint.get_metadata(info.latest_checkpoint))
    core.checkpoint.download(info.latest_checkpoint, "copy")
    print(core.checkpoint.upload("copy", {"a": 1}, selector=lambda path: path == "state") != "")
""",
            TRAINHUB_ATTEMPT="2",
        )
        assert output == f"{checkpoint} three\n{{'steps_completed': 3}}\nTrue\n"
        assert sorted(path.name for path in (job.folder / "copy").iterdir()) == ["metadata.json", "state"]

    def test_a_block_that_fails_leaves_no_checkpoint(self, job: JobProcess) -> None:
        block = "with core.checkpoint.store_path():\n        raise ValueError(1)\n"
        text = f"with det.core.init() as core:\n    {block}"
        assert job.refusal(text) == "ValueError: 1"
        assert list(job.checkpoints.iterdir()) == []

    def test_a_checkpoint_that_is_not_there_is_named(self, job: JobProcess) -> None:
        text = "with det.core.init() as core:\n    core.checkpoint.get_metadata('gone')\n"
        assert "There is no checkpoint gone in" in job.refusal(text)


class TestStops:
    WAIT = """
import time
with det.core.init() as core:
    print("started", flush=True)
    while not core.preempt.should_preempt():
        time.sleep(0.01)
    core.train.report_training_metrics(1, {"loss": 1})
print("saved", flush=True)
"""

    @pytest.mark.parametrize("has_file", [True, False])
    def test_a_stop_is_heard_by_file_or_signal_and_the_script_ends_by_itself(
        self, job: JobProcess, has_file: bool
    ) -> None:
        started = job.start(self.WAIT)
        assert started.stdout is not None
        assert started.stdout.readline() == "started\n"
        if has_file:
            (job.folder / "stop").write_text(json.dumps({"reason": "preempted"}))
        else:
            started.send_signal(signal.SIGTERM)
        output, errors = started.communicate(timeout=60)
        assert (output, errors, started.returncode) == ("saved\n", "", 0)
        assert job.hub.metrics == [("training/loss", 1.0, 1)]


class TestNames:
    @pytest.mark.parametrize(
        ("statement", "sentence"),
        [
            ("from determined import pytorch", "determined.pytorch is not offered: classes of trials need"),
            ("import determined.keras.callbacks", "determined.keras is not offered: classes of trials need"),
            ("from determined.transformers import DetCallback", "use the callbacks of Transformers"),
            ("import determined.launch.wrap_rank", "choose the distribution of the run"),
            ("det.nothing", "determined.nothing is not offered: only the Core API is."),
        ],
    )
    def test_what_is_not_offered_says_what_to_use(
        self, job: JobProcess, statement: str, sentence: str
    ) -> None:
        assert sentence in job.refusal(statement)

    def test_nothing_is_loaded_that_a_job_may_not_need(self, job: JobProcess) -> None:
        text = "import sys\nprint(sorted({'ssl', 'http.client', 'yaml'} & set(sys.modules)))\n"
        assert job.run(text) == "[]\n"
