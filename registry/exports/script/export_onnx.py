"""Turn a registered PyTorch model into ONNX on this node, and check that both give the same.

TrainHub runs this as a job like any other. `export.json` beside it says what is asked for, the model's files
are fetched from the hub, and outputs/ gets onnx/model.onnx and export-report.json: what was compared, or why
the export is refused."""

from __future__ import annotations

import sys

from onnx_export.reporting import Report, lacking
from onnx_export.told import say

try:
    from onnx_export.running import export
except ModuleNotFoundError as missing:
    sys.exit(Report().refuse(lacking(missing)))

if __name__ == "__main__":
    say("Exporting to ONNX.")
    sys.exit(export())
