"""Runs the demo's training in this process and records its curves: the numbers of past runs are real, only
their times are not."""

from __future__ import annotations

import argparse
import contextlib
import io
import runpy
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainhub.demo.story import STEPS, PastRun

FAILURE = """\
Traceback (most recent call last):
  File "train.py", line 217, in <module>
    main()
  File "train.py", line 207, in main
    weights = train(arguments)
RuntimeError: {message}
"""


@dataclass
class Recording:
    """What a training said. `lines`: those of its log. `metrics`: (step, key -> value). `model`: the
    bytes of its outputs/model.npz, empty if it did not get so far. `error`: the message of its exception."""

    lines: list[str] = field(default_factory=list)
    metrics: list[tuple[int, Mapping[str, float]]] = field(default_factory=list)
    params: dict[str, str] = field(default_factory=dict)
    model: bytes = b""
    error: str = ""

    def log(self, rank: int, started: str, *, is_last: bool) -> bytes:
        """Returns the log of a rank; only the last one shows the exception."""
        text = f"{started}\n" + "".join(f"{line}\n" for line in self.lines)
        if self.error:
            text += FAILURE.format(message=self.error) if is_last else ""
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
    """The script in `folder`, loaded once. One process stands for all ranks of a run: with the batch of all
    of them it makes the same steps."""

    def __init__(self, folder: Path) -> None:
        self._script: dict[str, Any] = runpy.run_path(str(folder / "train.py"), run_name="train")

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
        recording, said = Recording(), io.StringIO()
        try:
            with contextlib.redirect_stdout(said):
                weights = self._script["train"](arguments, RecordingLog(recording))
            if run.steps == STEPS:
                kept = io.BytesIO()
                self._script["np"].savez(kept, weights=weights)
                recording.model = kept.getvalue()
        except RuntimeError as error:
            recording.error = str(error)
        recording.lines = said.getvalue().replace(f"/{run.steps} ", f"/{STEPS} ").splitlines()
        recording.params |= {"batch_size": str(run.batch_size), "ranks": str(run.ranks)}
        return recording
