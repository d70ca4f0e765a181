"""Runs the demo's training in this process and records what it logs. Losses, accuracies, log lines and
tracebacks of past runs are real; times and throughput are those that the story gives them."""

from __future__ import annotations

import argparse
import contextlib
import io
import runpy
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainhub.demo.story import STEPS, PastRun


@dataclass
class Recording:
    """What a training wrote. `lines`: those of its log. `metrics`: (step, key -> value). `model`: the
    bytes of its outputs/model.npz, empty if it did not get so far. `traceback`: of its exception, if any."""

    lines: list[str] = field(default_factory=list)
    metrics: list[tuple[int, Mapping[str, float]]] = field(default_factory=list)
    params: dict[str, str] = field(default_factory=dict)
    model: bytes = b""
    traceback: str = ""

    def log(self, rank: int, started: str, *, is_last: bool) -> bytes:
        """Returns the log of a rank; only the last one shows the exception."""
        text = f"{started}\n" + "".join(f"{line}\n" for line in self.lines)
        if self.traceback:
            text += self.traceback if is_last else ""
        elif self.model and rank == 0:
            text += "kept outputs/model.npz\n"
        return text.encode()


class RecordingLog:
    """Takes the place of the log of the training."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        self._recording.metrics.append((step, dict(values)))

    def params(self, values: Mapping[str, object]) -> None:
        self._recording.params = {key: str(value) for key, value in values.items()}


class Training:
    """The script in `folder`, loaded once. One process stands for all ranks of a run, with the batch of all
    of them as far as there are samples."""

    def __init__(self, folder: Path) -> None:
        self._path = str(folder / "train.py")
        self._script: dict[str, Any] = runpy.run_path(self._path, run_name="train")

    def record(self, run: PastRun) -> Recording:
        arguments = argparse.Namespace(
            steps=run.steps,
            learning_rate=run.learning_rate,
            batch_size=run.batch_size * run.ranks,
            seed=run.seed,
            rest=0,
            breaks_at=run.breaks_at,
            hangs_at=0,
            slow_gpu="",
        )
        recording, output = Recording(), io.StringIO()
        try:
            with contextlib.redirect_stdout(output):
                weights = self._script["train"](arguments, RecordingLog(recording))
            if run.steps == STEPS:
                file = io.BytesIO()
                self._script["np"].savez(file, weights=weights)
                recording.model = file.getvalue()
        except RuntimeError as error:
            # Without the frame of this method, and with the path that the script has on a node.
            lines = traceback.format_exception(
                error.with_traceback(error.__traceback__ and error.__traceback__.tb_next)
            )
            recording.traceback = "".join(lines).replace(self._path, "train.py")
        recording.lines = output.getvalue().replace(f"/{run.steps} ", f"/{STEPS} ").splitlines()
        recording.params |= {"batch_size": str(run.batch_size), "ranks": str(run.ranks)}
        return recording
