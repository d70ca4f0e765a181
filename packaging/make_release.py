"""Makes a release in a folder: `make_release.py [FOLDER] [--key KEY]`, by default in dist, which is emptied.

Everything has the time of the newest commit, so two releases of one commit have the same bytes. SHA256SUMS
names each file with its digest; with a key of OpenSSH, SHA256SUMS.sig signs it."""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from build_deb import build_deb
from build_wheel import HUB, PACKAGES, PROJECT, build

SUMS = "SHA256SUMS"
# What a signature is for, so that one of another purpose does not count: see ssh-keygen(1).
NAMESPACE = "trainhub-release"


def make(to: Path, key: Path | None = None) -> list[Path]:
    """Returns the files of the release, made in the folder `to`. Raises subprocess.CalledProcessError if one
    cannot be made, or the key cannot sign."""
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir(parents=True)
    os.environ.setdefault("SOURCE_DATE_EPOCH", _time_of_commit())
    files = [build(to, name) for name in (HUB, *PACKAGES)]
    if shutil.which("dpkg-deb"):
        files.append(build_deb(to))
    # The exact versions with which this release was tested.
    files.append(Path(shutil.copy(PROJECT / "requirements.lock", to / "trainhub-hub-requirements.lock")))
    sums = to / SUMS
    sums.write_text("".join(f"{_sha256(path)}  {path.name}\n" for path in sorted(files)))
    files.append(sums)
    if key is not None:
        files.append(_sign(sums, key))
    return files


def _time_of_commit() -> str:
    command = ["git", "-C", str(PROJECT), "log", "-1", "--format=%ct"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _sign(path: Path, key: Path) -> Path:
    subprocess.run(["ssh-keygen", "-q", "-Y", "sign", "-f", str(key), "-n", NAMESPACE, str(path)], check=True)
    return path.with_name(f"{path.name}.sig")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=PROJECT / "dist")
    parser.add_argument("--key", type=Path, help="private key of OpenSSH that signs the list of digests")
    options = parser.parse_args()
    for file in make(options.folder, options.key):
        sys.stdout.write(f"{file}\n")
    if options.key is None:
        sys.stdout.write("Not signed: give a key with --key (make release KEY=FILE).\n")
