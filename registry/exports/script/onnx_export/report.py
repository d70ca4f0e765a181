"""Writes the result of the export to outputs/export-report.json, which the hub reads."""

from __future__ import annotations

import json
from pathlib import Path

from .run_log import write_line

OUTPUTS = Path("outputs").absolute()
REFUSED = 1


class ExportRefusal(Exception):
    """The model cannot be exported as requested; the message is shown to its owner.

    `field`: the field of the form to change, if it is known.
    """

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.message, self.field = message, field


class ExportReport:
    def __init__(self) -> None:
        self.fields: dict[str, object] = {}

    def add(self, **fields: object) -> None:
        self.fields |= fields

    def write(self) -> None:
        OUTPUTS.mkdir(exist_ok=True)
        aside = OUTPUTS / "export-report.json.part"
        aside.write_text(json.dumps(self.fields, indent=1, allow_nan=False) + "\n")
        # A rename, so that a run that is killed does not leave half a report.
        aside.replace(OUTPUTS / "export-report.json")

    def refuse(self, refusal: ExportRefusal) -> int:
        """Writes the refusal to the report and returns the exit status."""
        self.add(refusal=refusal.message, field=refusal.field)
        self.write()
        write_line(f"Export refused: {refusal.message}")
        return REFUSED


def missing_package(missing: ModuleNotFoundError) -> ExportRefusal:
    return ExportRefusal(
        f"The environment of this run lacks the Python package '{missing.name}'; an export needs torch, "
        "onnx, onnxscript and "
        "onnxruntime: choose an environment that has them.",
        "environment",
    )
