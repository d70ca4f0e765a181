"""What a script imports for certain, read from real files without running them."""

from __future__ import annotations

from pathlib import Path

import pytest

from environments.imports import scan_process, source_scan
from environments.imports.scan_process import SourceImports


def scanned(folder: Path, files: dict[str, str], entry: str = "train.py") -> SourceImports:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    script_folder = entry.rpartition("/")[0]
    return scan_process.imports_of(source_scan.scan(folder, entry, script_folder))


def tops(imports: SourceImports) -> set[str]:
    return {module.top for module in imports.modules}


CERTAIN = """
import pandas, cv2 as vision
from PIL import Image
from . import sibling

class Model:
    import einops

with open("x") as file:
    import yaml

try:
    import horovod.torch
finally:
    import polars

if __name__ == "__main__":
    import rich.console
"""
UNCERTAIN = """
import contextlib
from typing import TYPE_CHECKING

try:
    import apex
except ImportError:
    import amp
else:
    import amp_more
if TYPE_CHECKING:
    import a1
def later():
    import a2
with contextlib.suppress(ImportError):
    import a3
for _ in range(0):
    import a4
while False:
    import a5
raise SystemExit
import a6
"""


def test_imports_that_run_whenever_the_script_does(tmp_path: Path) -> None:
    imports = scanned(tmp_path, {"train.py": CERTAIN})
    assert tops(imports) == {"pandas", "cv2", "PIL", "einops", "yaml", "horovod", "polars", "rich"}
    assert [(module.path, module.line) for module in imports.modules][:2] == [("train.py", 2)] * 2
    assert (imports.is_complete, imports.is_opaque, imports.mentions_logger) == (True, False, False)


def test_imports_that_may_not_run_or_may_fail_are_left_out(tmp_path: Path) -> None:
    assert tops(scanned(tmp_path, {"train.py": UNCERTAIN})) == {"contextlib", "typing"}


def test_modules_of_the_source_are_followed_and_never_reported(tmp_path: Path) -> None:
    files = {
        "src/train.py": "import model\nfrom layers.blocks import attention\nimport lib.thing",
        "src/model.py": "import pandas",
        "src/layers/__init__.py": "from .blocks import dense",
        "src/layers/blocks/__init__.py": "",
        "src/layers/blocks/attention.py": "import einops",
        "src/layers/blocks/dense.py": "import scipy\nif __name__ == '__main__':\n    import never",
        "vendored/lib/thing.py": "import not_followed",
        "other.py": "import nowhere_imported",
    }
    imports = scanned(tmp_path, files, "src/train.py")
    assert tops(imports) == {"pandas", "einops", "scipy"}


@pytest.mark.parametrize(
    ("line", "is_opaque"),
    [
        ("import sys\nsys.path.append('/opt/libs')", True),
        ("import sys, os\nsys.path.insert(0, os.environ['LIBS'])", True),
        ("import sys\nsys.path += ['/opt/libs']", True),
        ("import subprocess, sys\nsubprocess.run([sys.executable, '-m', 'pip', 'install', 'x'])", True),
        ("import os\nos.system('pip install x')", True),
        ("import sys\nsys.modules['x'] = object()", True),
        ("import sys, os\nsys.path.append(os.path.dirname(__file__))", False),
        ("import sys\nsys.path.append('src')", False),
        ("# pip install x", False),
        ("import sys\nROOT = Path(__file__).parents[1]\nsys.path.append(str(ROOT / 'src'))", False),
        ("import sys\nROOT = Path.home()\nsys.path.append(str(ROOT))", True),
    ],
)
def test_says_when_modules_may_come_from_elsewhere(tmp_path: Path, line: str, *, is_opaque: bool) -> None:
    assert scanned(tmp_path, {"train.py": line}).is_opaque is is_opaque


@pytest.mark.parametrize(
    "text", ["def (", "x = 1\x00", "x = " + "-" * 100_000 + "1", "x=1" + "+1" * 80_000, "#" * 600_000]
)
def test_a_file_that_cannot_be_read_makes_the_scan_incomplete(tmp_path: Path, text: str) -> None:
    (tmp_path / "train.py").write_text("import pandas\nimport hostile")
    (tmp_path / "hostile.py").write_text(text)
    # In a process of its own, as the hub runs it.
    imports = scan_process.scan_source(tmp_path, "train.py", "")
    assert (tops(imports), imports.is_complete) == ({"pandas"}, False)


def test_a_source_that_takes_too_long_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "train.py").write_text("import pandas")
    monkeypatch.setattr(scan_process, "MAX_S", 0.001)
    assert scan_process.scan_source(tmp_path, "train.py", "") == SourceImports()


def test_a_logger_anywhere_in_the_source_counts(tmp_path: Path) -> None:
    files = {"train.py": "import torch", "conf/logger.yaml": "logger: wandb"}
    assert scanned(tmp_path, files).mentions_logger is True
