"""Resolves the curated environments from PyPI, and writes their locks and figures: `.venv/bin/python
packaging/lock_curated_sets.py [NAME…]`.

For each file in `environments/curated_sets/` it writes `[install]` and, beside it, a `.lock` with every
package and hash. Sets with a package that has no wheel are named and left as they are."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from uv import find_uv_bin

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from environments.curated import LOCK_PYTHON  # noqa: E402 - needs the path
from environments.lock_file import download_bytes, read_lock  # noqa: E402
from environments.projects.pylock import lock_from_pylock  # noqa: E402

FOLDER = ROOT / "environments" / "curated_sets"
PLATFORM = "x86_64-manylinux_2_28"
INDEX = "https://pypi.org/simple"
_INSTALL = re.compile(r"packages = [\d_]+\ndownload_bytes = [\d_]+\n")


def main() -> int:
    names, failed = sys.argv[1:], 0
    for path in sorted(FOLDER.glob("*.toml")):
        data = tomllib.loads(path.read_text())
        if names and data["name"] not in names:
            continue
        try:
            _write(path, _lock(data["requirements"]))
        except subprocess.CalledProcessError as error:
            failed += 1
            sys.stdout.write(f"{data['name']}: left as it is. {' '.join(error.stderr.split())[:300]}\n")
    return 1 if failed else 0


def _lock(requirements: list[str]) -> str:
    """Returns the lock. Raises CalledProcessError if uv finds no versions that fit together."""
    with tempfile.TemporaryDirectory() as name:
        source, output = Path(name) / "requirements.in", Path(name) / "pylock.toml"
        source.write_text("\n".join([*requirements, ""]))
        command = [
            find_uv_bin(),
            "pip",
            "compile",
            "--quiet",
            "--no-config",
            f"--default-index={INDEX}",
            "--only-binary=:all:",
            f"--python-version={LOCK_PYTHON}",
            f"--python-platform={PLATFORM}",
            "--format=pylock.toml",
            f"--output-file={output}",
            str(source),
        ]
        subprocess.run(command, check=True, capture_output=True, text=True)
        return lock_from_pylock(tomllib.loads(output.read_text()), LOCK_PYTHON, output.name)


def _write(path: Path, lock: str) -> None:
    packages = read_lock(lock)
    size = download_bytes(packages)
    if size is None:
        raise ValueError(f"{INDEX} does not say the size of every file of {path.name}")
    # x are exact enough for people who choose.
    figures = f"packages = {len(packages)}\ndownload_bytes = {round(size, -6):_}\n"
    path.write_text(_INSTALL.sub(figures, path.read_text()))
    path.with_suffix(".lock").write_text(lock)
    sys.stdout.write(f"{path.stem}: {len(packages)} packages, {size / 1e6:,.0f} MB\n")


if __name__ == "__main__":
    sys.exit(main())
