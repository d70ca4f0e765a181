"""Builds the Debian package of a node: `build_deb.py [FOLDER]`, by default in dist. Prints its path.

It contains the node program with all that it requires, in the versions of requirements.lock, for the kind of
processor of this machine. uv downloads them. With SOURCE_DATE_EPOCH two builds of the same sources have the
same bytes."""

from __future__ import annotations

import argparse
import gzip
import os
import shutil
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path

from build_wheel import PROJECT, build

sys.path.insert(0, str(PROJECT))
from trainhub_node import __version__, systemd

NAME = "trainhub-node"
SCRIPTS = PROJECT / "packaging" / "debian"
LIBRARY = Path("usr/lib", NAME)
# Installation files that name the folder of the build.
LOCAL_FILES = ("direct_url.json", "uv_cache.json", "REQUESTED", "RECORD")
# Debian's own variables name whoever makes the package.
MAINTAINER = (
    f"{os.environ.get('DEBFULLNAME', 'TrainHub')} <{os.environ.get('DEBEMAIL', 'trainhub@localhost')}>"
)
CONTROL = """\
Package: {name}
Version: {version}
Architecture: {architecture}
Maintainer: {maintainer}
Installed-Size: {size}
Depends: python3 (>= 3.11), python3-venv, libc6 (>= 2.28), ca-certificates
Recommends: systemd, git
Section: science
Priority: optional
Description: node of a TrainHub, which takes runs of distributed training
 TrainHub is a self-hosted web dashboard for distributed GPU training on your
 own machines. This package makes a machine one of its nodes: it takes runs,
 starts their processes, and tells how they do. Join a hub with
 `trainhub-node join`, then enable the service trainhub-node.
"""
CHANGELOG = """\
{name} ({version}) stable; urgency=medium

  * See /docs/changelog/ of a hub.

 -- {maintainer}  {date}
"""


def build_deb(to: Path) -> Path:
    """Returns the package, made in `to`. Raises subprocess.CalledProcessError if it cannot be built."""
    to.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        root = Path(work, "root")
        _install_program(root, build(Path(work, "wheel")))
        _add_files(root)
        architecture = _output("dpkg", "--print-architecture")
        size = sum(path.stat().st_size for path in root.rglob("*") if path.is_file()) // 1024
        control = root / "DEBIAN"
        control.mkdir()
        facts = {"name": NAME, "version": __version__, "maintainer": MAINTAINER}
        (control / "control").write_text(CONTROL.format(**facts, architecture=architecture, size=size))
        for script in ("postinst", "prerm", "postrm"):
            shutil.copy(SCRIPTS / script, control)
        _set_modes(root)
        package = to / f"{NAME}_{__version__}_{architecture}.deb"
        # xz would take minutes for a tenth less.
        command = ["dpkg-deb", "--root-owner-group", "-Zgzip", "--build", str(root), str(package)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return package


def _install_program(root: Path, wheel: Path) -> None:
    library = root / LIBRARY
    uv = [sys.executable, str(PROJECT / ".ci" / "uv"), "pip", "install", "--target", str(library)]
    subprocess.run([*uv, "--constraint", str(PROJECT / "requirements.lock"), str(wheel)], check=True)
    # uv is looked for beside the programs that are installed, and nothing else needs these.
    for path in list((library / "bin").iterdir()):
        if path.name != "uv":
            path.unlink()
    for path in [*library.rglob("__pycache__"), *library.glob(".*")]:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    for name in LOCAL_FILES:
        for path in library.glob(f"*.dist-info/{name}"):
            path.unlink()


def _add_files(root: Path) -> None:
    program = root / "usr/bin" / NAME
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nPYTHONPATH=/{LIBRARY} exec /usr/bin/python3 -m trainhub_node "$@"\n')
    unit = root / "lib/systemd/system" / systemd.NAME
    unit.parent.mkdir(parents=True)
    text = systemd.UNIT.format(command=f"/usr/bin/{NAME} run", environment="", target="multi-user.target")
    # Before it has joined a hub there is nothing to run.
    joined = "ConditionPathExists=/var/lib/trainhub-node/node.json\n"
    unit.write_text(
        text.replace("StartLimit", f"{joined}StartLimit", 1).replace("`trainhub-node unit`", "the package")
    )
    documents = root / "usr/share/doc" / NAME
    documents.mkdir(parents=True)
    shutil.copy(SCRIPTS / "copyright", documents)
    date = format_datetime(datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), UTC))
    changelog = CHANGELOG.format(name=NAME, version=__version__, maintainer=MAINTAINER, date=date)
    (documents / "changelog.gz").write_bytes(gzip.compress(changelog.encode(), 9, mtime=0))


def _set_modes(root: Path) -> None:
    programs = (root / "usr/bin", root / LIBRARY / "bin", root / "DEBIAN")
    for path in root.rglob("*"):
        is_program = path.parent in programs and path.name != "control"
        path.chmod(0o755 if path.is_dir() or is_program else 0o644)


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=PROJECT / "dist")
    sys.stdout.write(f"{build_deb(parser.parse_args().folder)}\n")
