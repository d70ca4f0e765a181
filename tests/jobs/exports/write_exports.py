"""Writes the exports of all specs of the tests, so that `foreign_parsers.py` can read them:

python -m tests.jobs.exports.write_exports FOLDER"""

from __future__ import annotations

import sys
from pathlib import Path

from jobs.exports import FORMATS, export_spec
from tests.jobs.exports.specs import all_specs


def write(folder: Path) -> None:
    for name, spec in all_specs():
        for to in FORMATS:
            for file, text in export_spec(spec, to).files.items():
                path = folder / to / name / file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
