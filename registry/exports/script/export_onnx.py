"""Converts a registered PyTorch model to ONNX on this node, and checks that both give the same results.

TrainHub runs this as an ordinary job. `export.json` beside it contains the request, the model's files are
downloaded from the hub, and the results are outputs/onnx/model.onnx and outputs/export-report.json.
"""

from __future__ import annotations

import sys

from onnx_export.report import ExportReport, missing_package
from onnx_export.run_log import write_line

# This imports torch and onnx; if they are missing, the report can still name the package.
try:
    from onnx_export.pipeline import export
except ModuleNotFoundError as missing:
    sys.exit(ExportReport().refuse(missing_package(missing)))

if __name__ == "__main__":
    write_line("Exporting to ONNX.")
    sys.exit(export())
