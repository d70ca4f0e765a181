"""A conda channel over HTTP, with packages that the test makes: one of them is a Python that runs."""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pip
import pytest

from environments.conda.conda_lock import conda_packages
from trainhub_launch.order import EnvironmentSpec

# An interpreter without a shared library of its own finds its standard library beside itself, wherever it is.
INTERPRETER = Path("/usr/bin/python3.11")
LIBRARY = Path("/usr/lib/python3.11")
OMISSIONS = (
    "test",
    "idlelib",
    "tkinter",
    "lib2to3",
    "pydoc_data",
    "ensurepip",
    "distutils",
    "EXTERNALLY-MANAGED",
    "sitecustomize.py",
    "config-3.11-x86_64-linux-gnu",
)
PLACEHOLDER = "/opt/placeholder_of_the_prefix_that_is_as_long_as_the_one_of_conda_build"
INDEXER = """
import asyncio, os, sys
from rattler.index import index_fs
asyncio.run(index_fs(sys.argv[1], write_zst=False, write_shards=False, force=True))
os._exit(0)
"""


@dataclass(frozen=True)
class Member:
    """A file of a package. `link`: it is a link to this; `is_text`: it holds PLACEHOLDER."""

    content: bytes = b""
    mode: int = 0o644
    link: str = ""
    is_text: bool = False
    # A fixed time, because compiled modules record that of their source.
    mtime: float = 1_700_000_000


@dataclass
class CondaChannel:
    """`folder` is the channel; `url` is set while it is served. `requests`: the paths that were asked for."""

    folder: Path
    url: str = ""
    is_silent: bool = False
    requests: list[str] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)

    def add(
        self,
        name: str,
        version: str = "1.0",
        *depends: str,
        files: Mapping[str, Member] | None = None,
        build: str = "0",
        noarch: str = "",
        programs: Sequence[str] = (),
    ) -> Path:
        """Adds a package and returns its file. `noarch`: "python" for modules of any Python, with
        the entry points of its `programs`."""
        subdir = "noarch" if noarch else "linux-64"
        index: dict[str, object] = {
            "name": name,
            "version": version,
            "build": build,
            "build_number": 0,
            "depends": list(depends),
            "subdir": subdir,
        }
        if noarch:
            index["noarch"] = noarch
        path = self.folder / subdir / f"{name}-{version}-{build}.tar.bz2"
        path.parent.mkdir(parents=True, exist_ok=True)
        _write(path, index, files or {f"share/{name}.txt": Member(version.encode())}, programs)
        return path

    def add_module(self, name: str, version: str = "1.0", *depends: str) -> Path:
        """Adds a Python package of one module, with the metadata by which pip knows it."""
        information = f"site-packages/{name}-{version}.dist-info"
        return self.add(
            name,
            version,
            "python",
            *depends,
            noarch="python",
            build="py_0",
            files={
                f"site-packages/{name}.py": Member(f"VERSION = {version!r}\n".encode()),
                f"{information}/METADATA": Member(
                    f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode()
                ),
                f"{information}/INSTALLER": Member(b"conda"),
                f"{information}/RECORD": Member(b""),
            },
        )

    def add_python(self) -> Path:
        """Adds the machine's Python 3.11. Skips the test where there is none that can be moved."""
        if not INTERPRETER.exists() or b"libpython" in _libraries(INTERPRETER):
            pytest.skip(f"{INTERPRETER} is no Python that can be moved")
        files = {f"lib/{LIBRARY.name}/{path}": member for path, member in _library(LIBRARY)}
        files |= {
            "bin/python3.11": Member(INTERPRETER.read_bytes(), 0o755),
            "bin/python3": Member(link="python3.11"),
            "bin/python": Member(link="python3.11"),
            "bin/where": Member(
                f"#!{PLACEHOLDER}/bin/python\nprint(__file__)\n".encode(), 0o755, is_text=True
            ),
            # Debian's Python looks for packages in these folders instead of site-packages.
            "local": Member(link="."),
            "lib/python3/dist-packages": Member(link="../python3.11/site-packages"),
            "lib/python3.11/dist-packages": Member(link="site-packages"),
            "lib/python3.11/site-packages/README.txt": Member(b"packages\n"),
            "etc/conda/activate.d/python.sh": Member(
                b'export CHANNEL_MARK="$CONDA_PREFIX/mark"\nexport PATH="$PATH:$CONDA_PREFIX/more"\n'
            ),
            "bin/.python-post-link.sh": Member(b'#!/bin/sh\ntouch "$PREFIX/post-link-ran"\n', 0o755),
        }
        return self.add("python", "3.11.2", "__glibc >=2.17", files=files)

    def add_pip(self) -> Path:
        """Adds the pip of the tests, whose program is made when it is installed."""
        folder = Path(pip.__file__).parent
        files = {f"site-packages/pip/{path}": member for path, member in _library(folder)}
        return self.add(
            "pip",
            pip.__version__,
            "python",
            noarch="python",
            build="py_0",
            files=files,
            programs=["pip = pip._internal.cli.main:main"],
        )

    def index(self) -> None:
        (self.folder / "noarch").mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, "-c", INDEXER, str(self.folder)], check=True, capture_output=True)

    def locked(self, *names: str, lock: str = "") -> EnvironmentSpec:
        """Returns the environment of these packages, as nodes get it. `lock`: of what pip installs on top."""
        records = []
        for path in self.folder.glob("*/repodata.json"):
            subdir, url = path.parent.name, f"{self.url}/{path.parent.name}"
            for file, record in json.loads(path.read_text())["packages"].items():
                if record["name"] in names:
                    place = {"fn": file, "url": f"{url}/{file}", "channel": self.url, "subdir": subdir}
                    records.append(record | place)
        packages = [asdict(package) for package in conda_packages(records)]
        return EnvironmentSpec("mine", "1", "conda", lock=lock, conda={"packages": packages})

    @contextmanager
    def serving(self) -> Iterator[CondaChannel]:
        handler = type("Handler", (_Handler,), {"channel": self})
        server = ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(self.folder)))
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            yield self
        finally:
            self.ended.set()
            server.shutdown()
            server.server_close()


class _Handler(SimpleHTTPRequestHandler):
    channel: CondaChannel

    def log_message(self, format: str, *args: object) -> None: ...

    def do_GET(self) -> None:
        self.channel.requests.append(self.path)
        if self.channel.is_silent:
            self.channel.ended.wait(60)
            return
        super().do_GET()


def _libraries(program: Path) -> bytes:
    return subprocess.run(["ldd", str(program)], capture_output=True, check=False).stdout


def _library(folder: Path) -> Iterator[tuple[str, Member]]:
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in OMISSIONS)
        for name in sorted(names):
            path = Path(root, name)
            if name in OMISSIONS or not path.is_file():
                continue
            status = path.stat()
            yield (
                str(path.relative_to(folder)),
                Member(path.read_bytes(), status.st_mode & 0o777, mtime=int(status.st_mtime)),
            )


def _write(
    path: Path, index: Mapping[str, object], files: Mapping[str, Member], programs: Sequence[str]
) -> None:
    paths = [
        {
            "_path": name,
            "path_type": "softlink" if member.link else "hardlink",
            **({} if member.link else _digest(member.content)),
            **({"prefix_placeholder": PLACEHOLDER, "file_mode": "text"} if member.is_text else {}),
        }
        for name, member in files.items()
    ]
    information = {
        "info/index.json": index,
        "info/paths.json": {"paths": paths, "paths_version": 1},
        "info/about.json": {},
    }
    if index.get("noarch") == "python":
        information["info/link.json"] = {
            "noarch": {"type": "python", "entry_points": list(programs)},
            "package_metadata_version": 1,
        }
    with tarfile.open(path, "w:bz2", compresslevel=1) as archive:
        for name, value in information.items():
            _put(archive, name, Member(json.dumps(value).encode()))
        for name, member in files.items():
            _put(archive, name, member)


def _digest(content: bytes) -> dict[str, object]:
    return {"sha256": hashlib.sha256(content).hexdigest(), "size_in_bytes": len(content)}


def _put(archive: tarfile.TarFile, name: str, member: Member) -> None:
    entry = tarfile.TarInfo(name)
    entry.mode, entry.size = member.mode, len(member.content)
    entry.mtime = member.mtime
    if member.link:
        entry.type, entry.linkname = tarfile.SYMTYPE, member.link
    archive.addfile(entry, io.BytesIO(member.content))
