"""The scan is bounded in time, memory, number of files and unpacked size; what breaks a limit is never called
clean."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest

from registry.scanning.file_scan import verdict_for_file
from registry.scanning.formats import source
from registry.scanning.verdict_names import CLEAN, NOT_SCANNED
from registry.scanning.versions import BARE
from tests.attacks.scan.builders import npy, zipped
from tests.hub import PROJECT

MEMORY_BYTES = 512 * 2**20


def scan(tmp_path: Path, name: str, data: bytes, seconds: int = 10) -> dict[str, Any]:
    """In the process that the worker starts, with its limits."""
    file = tmp_path / "file"
    file.write_bytes(data)
    order = json.dumps({"files": [[str(file), name]], "seconds": seconds, "memory_bytes": MEMORY_BYTES})
    done = subprocess.run(
        [sys.executable, "-m", "registry.scanning.child"],
        input=order + "\n",
        capture_output=True,
        text=True,
        check=True,
        cwd=PROJECT,
        env=BARE,
        timeout=120,
    )
    return dict(json.loads(done.stdout)[1])


def bomb() -> bytes:
    """1 GiB of zeros, twice compressed, in a zip: 5 kB."""
    return zipped({"a.gz": gzip.compress(gzip.compress(b"\0" * 2**20) * 1024)}, compressed=True)


def put(key: int) -> bytes:
    return b"r" + key.to_bytes(4, "little")


def nested_yaml() -> bytes:
    """Ten lines, each with nine times the line before: a billion items where somebody expands them."""
    lines = [b"%c: &%c [%s]\n" % (98 + n, 98 + n, b",".join([b"*%c" % (97 + n)] * 9)) for n in range(9)]
    return b"a: &a [x,x]\n" + b"".join(lines)


HOSTILE: dict[str, Callable[[], tuple[str, bytes]]] = {
    "JSON of a million levels": lambda: ("a.json", b"[" * 1_000_000),
    "a pickle of marks": lambda: ("a.pkl", b"\x80\x04" + b"(" * 30_000_000),
    "a pickle with a memo out of order": lambda: (
        "a.pkl",
        b"\x80\x04N" + b"".join(put(2 * number) for number in range(300_000)),
    ),
    "a gzip bomb in a zip": lambda: ("a.zip", bomb()),
    "an array of 2**62 numbers": lambda: (
        "a.npy",
        npy(numpy.zeros(4)).replace(b"(4,)", b"(4611686018427387904,)"),
    ),
    "safetensors with a huge header": lambda: (
        "a.safetensors",
        (99_999_999).to_bytes(8, "little") + b"{" + b" " * 100,
    ),
    "GGUF of 2**60 keys": lambda: (
        "a.gguf",
        b"GGUF\x03\0\0\0" + b"\0" * 8 + b"\0" * 7 + b"\x10" + b"\0" * 99,
    ),
    "a line without an end": lambda: ("a.pkl", b"c" + b"a" * 5_000_000),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_file_is_not_scanned_within_its_time(kind: str, tmp_path: Path) -> None:
    started = time.monotonic()
    found = scan(tmp_path, *HOSTILE[kind](), seconds=5)
    assert found["verdict"] == NOT_SCANNED, found
    assert found["note"]
    assert time.monotonic() - started < 60


def test_aliases_of_yaml_are_not_expanded(tmp_path: Path) -> None:
    assert scan(tmp_path, "a.yaml", nested_yaml(), seconds=5)["verdict"] == CLEAN


def test_no_more_is_unpacked_than_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "MAX_UNPACKED_BYTES", 2**20)
    monkeypatch.setattr(
        source.ScanLimits,
        "__init__",
        lambda self: self.__dict__.update(remaining_bytes=2**20, remaining_members=10),
    )
    file = tmp_path / "file"
    file.write_bytes(zipped({f"{number}.txt": b" " * 2**19 for number in range(4)}, compressed=True))
    found = verdict_for_file(file, "a.zip")
    assert (found.verdict, "unpacks to more" in found.note) == (NOT_SCANNED, True), found
    file.write_bytes(zipped({f"{number}.txt": b"x" for number in range(11)}))
    found = verdict_for_file(file, "a.zip")
    assert (found.verdict, "more than" in found.note) == (NOT_SCANNED, True), found


def test_a_process_that_is_killed_leaves_its_file_not_scanned(tmp_path: Path) -> None:
    """A zip with millions of entries takes the memory that the process may have."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for number in range(30_000):
            archive.writestr(f"{number}.txt", b"")
    found = scan(tmp_path, "a.zip", buffer.getvalue(), seconds=30)
    assert found["verdict"] == NOT_SCANNED
    assert "20000" in found["note"]


def test_the_scanning_process_knows_no_secrets() -> None:
    assert not [name for name in BARE if name.startswith(("SECRET", "DATABASE", "TRAINHUB", "VALKEY"))]
