"""What came of it, as a file that the hub reads: outputs/export-report.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .told import say

OUTPUTS = Path("outputs").absolute()
REFUSED = 1


class Refusal(Exception):
    """The model cannot be exported as asked; the message is the sentence that its owner reads.

    `field`: what in the form would have to be different, where it is known.
    """

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.message, self.field = message, field


class Report:
    def __init__(self) -> None:
        self.found: dict[str, Any] = {}

    def add(self, **found: Any) -> None:
        self.found |= found

    def write(self) -> None:
        OUTPUTS.mkdir(exist_ok=True)
        aside = OUTPUTS / "export-report.json.part"
        aside.write_text(json.dumps(self.found, indent=1, allow_nan=False) + "\n")
        aside.replace(OUTPUTS / "export-report.json")

    def refuse(self, refusal: Refusal) -> int:
        """Leave the reason behind; the exit code."""
        self.add(refusal=refusal.message, field=refusal.field)
        self.write()
        say(f"Export refused: {refusal.message}")
        return REFUSED


def lacking(missing: ModuleNotFoundError) -> Refusal:
    return Refusal(
        f"The environment of this run lacks the Python package '{missing.name}'; an export needs torch, "
        "onnx, onnxscript and "
        "onnxruntime: choose an environment that has them.",
        "environment",
    )
