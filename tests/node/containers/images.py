"""A small image in a private store of podman, made of programs of this machine; no registry is needed."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import ClassVar

import psutil
import pytest

from trainhub_launch.order import EnvironmentSpec

PROGRAMS = (
    "/bin/sh",
    "/bin/sleep",
    "/bin/cat",
    "/bin/mount",
    "/bin/umount",
    "/usr/bin/id",
    "/usr/bin/unshare",
)
FOLDERS = ("etc", "proc", "dev", "sys", "tmp", "var/tmp", "run", "root", "usr/bin", "opt")
LAST_CALLS_S = 30.0
UNUSED = {"__pycache__", "test", "idlelib", "lib2to3", "tkinter", "ensurepip", "pydoc_data", "dist-packages"}
# Where the machine limits what its containers may open: without, runc cannot raise the limit of files.
CONFIGURATION = """
[containers]
default_ulimits = ["nofile=4096:20000", "nproc=4096:4096"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
"""
STORAGE = '[storage]\ndriver = "overlay"\ngraphroot = "{folder}/store"\nrunroot = "{folder}/run"\n'
NAME = "localhost/trainhub-tests:1"
# Of the image; a run must see them.
VARIABLES = {"PATH": "/opt/bin:/usr/bin:/bin", "GREETING": "from the image"}


def has_podman() -> bool:
    return os.geteuid() == 0 and shutil.which("podman") is not None and shutil.which("catatonit") is not None


def make_root(folder: Path, *, python: str = "/usr/bin/python3") -> Path:
    """Makes the files of an image: a shell, a few programs, and the machine's own Python."""
    for name in FOLDERS:
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "tmp").chmod(0o1777)
    for program in (*PROGRAMS, *((python,) if python else ())):
        _copy_program(Path(program), folder)
    (folder / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    (folder / "etc/group").write_text("root:x:0:\n")
    if python:
        library = subprocess.run(
            [python, "-c", "import os; print(os.path.dirname(os.__file__))"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        shutil.copytree(library, f"{folder}{library}", ignore=lambda _, names: UNUSED & set(names))
        for module in Path(library, "lib-dynload").glob("_ctypes.*.so"):
            _copy_libraries(module, folder)
    return folder


def add_open_mpi(folder: Path) -> None:
    """Adds the machine's Open MPI, without what other networks need."""
    for name in ("mpirun", "orted"):
        program = Path(shutil.which(name) or name).resolve()
        _copy_program(program, folder)
        if program.name != name:
            (folder / "usr/bin" / name).unlink(missing_ok=True)
            (folder / "usr/bin" / name).symlink_to(program)
    library = next(Path("/usr/lib").glob("*/openmpi/lib"))
    shutil.copytree(library, f"{folder}{library}", symlinks=True)
    # What a plugin needs besides; others are left out by Open MPI when theirs are missing.
    _copy_libraries(next(library.glob("*/mca_pmix_ext3x.so")), folder)
    for path in (Path("/etc/openmpi"), Path("/usr/share/openmpi"), *Path("/usr/lib").glob("*/pmix2")):
        shutil.copytree(path, f"{folder}{path}", dirs_exist_ok=True)


def _copy_program(program: Path, folder: Path) -> None:
    target = Path(f"{folder}{program}")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(program, target)
    _copy_libraries(program, folder)


def _copy_libraries(program: Path, folder: Path) -> None:
    linked = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False).stdout
    for library in re.findall(r"(/\S+)", linked):
        place = Path(f"{folder}{library}")
        if not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(library, place)


class PrivateEngine:
    """A container engine with images, containers and settings of its own in `folder`. `variables` are those
    of each call, and `before` is the beginning of a command that may use the engine."""

    name: ClassVar[str]
    before: Sequence[str] = ()

    def __init__(self, folder: Path, variables: Mapping[str, str]) -> None:
        self.folder = folder
        self.variables = dict(variables)

    def __call__(self, *arguments: str, stdin: bytes = b"") -> str:
        done = subprocess.run(
            [*self.before, self.name, *arguments],
            input=stdin,
            cwd="/",
            env={**os.environ, **self.variables},
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()

    def make_image(self, root: Path, name: str = NAME, variables: Mapping[str, str] = VARIABLES) -> None:
        tar = subprocess.run(["tar", "-C", str(root), "-c", "."], capture_output=True, check=True).stdout
        changes = [f"--change=ENV {key}={json.dumps(value)}" for key, value in variables.items()]
        self("import", *changes, "-", name, stdin=tar)

    def environment(self, name: str = NAME) -> EnvironmentSpec:
        """Returns the environment of an image that this engine has."""
        raise NotImplementedError

    def containers(self) -> list[str]:
        return self("ps", "--all", "--format={{.Names}}").split()


class Podman(PrivateEngine):
    name = "podman"

    def __init__(self, folder: Path) -> None:
        (folder / "containers.conf").write_text(CONFIGURATION)
        (folder / "storage.conf").write_text(STORAGE.format(folder=folder))
        variables = {
            "CONTAINERS_CONF": str(folder / "containers.conf"),
            "CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"),
        }
        super().__init__(folder, variables)

    def environment(self, name: str = NAME) -> EnvironmentSpec:
        digest = self("image", "inspect", "--format={{.Digest}}", name).strip()
        repository = name.rpartition(":")[0]
        return image_environment(name, digest, f"{repository}@{digest}")


def image_environment(reference: str, digest: str, pull: str) -> EnvironmentSpec:
    image = {"reference": reference, "digest": digest, "pull": pull}
    return EnvironmentSpec(name="own", version="1", kind="image", image=image)


@contextmanager
def private_podman(folder: Path) -> Iterator[Podman]:
    """Podman for tests; what it holds is removed at the end."""
    if not has_podman():
        pytest.skip("containers need root, podman, runc and catatonit (.ci/system-packages)")
    podman = Podman(folder)
    try:
        yield podman
    finally:
        remove_podman(podman)


def remove_podman(podman: Podman) -> None:
    """Removes its containers, images and files."""
    podman("rm", "--all", "--force", "--time=0")
    # A container's monitor calls Podman once more when the container has ended, and that mounts the store
    # again: once for each call that found it unmounted.
    deadline = time.monotonic() + LAST_CALLS_S
    while _are_left(podman.folder) and time.monotonic() < deadline:
        time.sleep(0.05)
    while True:
        for mount in _mounts_below(podman.folder):
            subprocess.run(["umount", "-l", mount], check=False, stderr=subprocess.DEVNULL)
        try:
            shutil.rmtree(podman.folder)
            return
        except OSError as error:
            # Such a call has come in between.
            if error.errno != errno.EBUSY or time.monotonic() > deadline + LAST_CALLS_S:
                raise
            time.sleep(0.2)


def _mounts_below(folder: Path) -> list[str]:
    """Returns what is mounted there, inner ones first: the store itself, and /dev/shm of its containers."""
    places = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
    return [place for place in reversed(places) if place.startswith(f"{folder}/")]


def _are_left(folder: Path) -> bool:
    """Returns whether any process has a file of `folder` in its arguments, or calls Podman with it."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            words = process.cmdline()
            if process.name() == "podman":
                words += process.environ().values()
            if any(f"{folder}/" in word for word in words):
                return True
    return False
