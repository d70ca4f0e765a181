"""What one file would import when it is loaded, by picklescan: it reads opcodes and runs none."""

from __future__ import annotations

import json
import logging
import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from picklescan import scanner
from picklescan.scanner import SafetyLevel, ScanResult
from picklescan.torch import InvalidMagicError

from registry.scanning.streams import COMPRESSED, Skimmed
from registry.scanning.words import CLEAN, DANGEROUS, SUSPICIOUS, UNSCANNED

PICKLES = (".pkl", ".pickle", ".joblib", ".dill", ".cloudpickle")
TORCH = (".pt", ".pth", ".bin", ".ckpt")
KERAS = (".h5", ".hdf5", ".keras")
EXTENSIONS = (*PICKLES, *TORCH, *KERAS, ".npy", ".npz", ".zip", ".7z", ".gz", ".z", ".bz2", ".xz", ".lzma", ".lz4", ".model")
MAGIC = re.compile(rb"\x80[\x00-\x05]|PK\x03\x04|\x93NUMPY|7z\xbc\xaf")
LAMBDA = re.compile(rb'"class_name":\s*"Lambda"')
MOST_CONFIG_BYTES = 16 * 1024 * 1024
MOST_FINDINGS = 50
CHUNK_BYTES = 1024 * 1024
LAMBDA_FINDING = "keras Lambda layer"


class Verdict(NamedTuple):
    """`findings`: what would be imported, the worst first; `note` a sentence, where there is more to say."""

    verdict: str
    findings: tuple[str, ...] = ()
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        return {"verdict": self.verdict, "findings": [_shown(text) for text in self.findings], "note": _shown(self.note)}


def _shown(text: str) -> str:
    """As any database takes it: names in a pickle may be any bytes."""
    return text.encode("utf-8", "replace").decode().replace("\x00", "\ufffd")


def may_hold_pickle(name: str, head: bytes) -> bool:
    """By its name, or by its first 8 bytes."""
    return name.lower().endswith(EXTENSIONS) or MAGIC.match(head) is not None


def verdict_of(path: Path, name: str) -> Verdict:
    """Of the file `path`, which is called `name` in its model."""
    extension = Path(name).suffix.lower()
    try:
        with path.open("rb") as file, _said() as complaints:
            found = _scan(file, extension)
            lambdas = _lambdas(file, extension) if extension in KERAS else False
    except (MemoryError, RecursionError):
        return Verdict(UNSCANNED, note="It needs more memory than the scanner may take.")
    except Unsupported as error:
        return Verdict(UNSCANNED, note=str(error))
    except Exception as error:  # made by strangers: any parser may fail in any way
        return Verdict(UNSCANNED, note=f"It cannot be read: {type(error).__name__}: {str(error)[:200]}")
    return _judged(found, lambdas, _incomplete(found, complaints, extension))


class Unsupported(Exception):
    """The message is a sentence for the page."""


def _scan(file: IO[bytes], extension: str) -> ScanResult:
    head = file.read(8)
    file.seek(0)
    if head.startswith(b"PK\x03\x04"):
        return scanner.scan_zip_bytes(file, "file")
    if head.startswith((b"7z\xbc\xaf", b"\x04\x22\x4d\x18")):
        raise Unsupported("It is compressed in a way that the scanner does not read (7z or LZ4).")
    if head.startswith(b"\x93NUMPY"):
        return scanner.scan_numpy(file, "file")
    for magic, opened in COMPRESSED.items():
        if head.startswith(magic):
            return _pickles(opened(file))
    if extension in KERAS:
        return ScanResult([])
    if extension in TORCH:
        try:
            return scanner.scan_pytorch(_skimmed(file), "file")
        except InvalidMagicError:
            file.seek(0)
    return _pickles(file)


def _pickles(file: IO[bytes]) -> ScanResult:
    return scanner.scan_pickle_bytes(_skimmed(file), "file")


def _skimmed(file: IO[bytes]) -> IO[bytes]:
    return cast("IO[bytes]", Skimmed(file))


def _lambdas(file: IO[bytes], extension: str) -> bool:
    """Whether a Keras model brings Python code of its own."""
    file.seek(0)
    if extension == ".keras":
        with zipfile.ZipFile(file) as archive, archive.open("config.json") as config:
            return _names_lambda(json.loads(config.read(MOST_CONFIG_BYTES)))
    rest = b""
    while chunk := file.read(CHUNK_BYTES):
        if LAMBDA.search(rest + chunk):
            return True
        rest = chunk[-64:]
    return False


def _names_lambda(config: Any) -> bool:
    if isinstance(config, dict):
        return config.get("class_name") == "Lambda" or any(_names_lambda(item) for item in config.values())
    return isinstance(config, list) and any(_names_lambda(item) for item in config)


def _incomplete(found: ScanResult, complaints: list[str], extension: str) -> bool:
    """Whether something in it was left unread; data that never was a pickle is not."""
    if found.scan_err or any(text.startswith(("Invalid file", "ERROR: parsing")) for text in complaints):
        return True
    is_no_pickle = any(text.startswith("WARNING: could not parse") for text in complaints)
    return is_no_pickle and not found.globals and extension in (*PICKLES, ".pt", ".pth")


def _judged(found: ScanResult, lambdas: bool, incomplete: bool) -> Verdict:
    dangerous = _named(found, SafetyLevel.Dangerous)
    findings = [*dangerous, *([LAMBDA_FINDING] if lambdas else []), *_named(found, SafetyLevel.Suspicious)]
    shown = tuple(text[:200] for text in findings[:MOST_FINDINGS])
    if dangerous:
        return Verdict(DANGEROUS, shown, "Loading it can run any program.")
    if incomplete:
        return Verdict(UNSCANNED, shown, "Only a part of it could be read as a pickle.")
    if findings:
        return Verdict(SUSPICIOUS, shown, "Loading it runs code of these libraries, which the scanner does not know as harmless.")
    return Verdict(CLEAN)


def _named(found: ScanResult, level: SafetyLevel) -> list[str]:
    return sorted({f"{item.module}.{item.name}" for item in found.globals if item.safety is level})


class _Listening(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage()[:200])


@contextmanager
def _said() -> Iterator[list[str]]:
    """What the library logs meanwhile: it tells some of what it could not read nowhere else."""
    log, listening = logging.getLogger("picklescan"), _Listening()
    log.addHandler(listening)
    log.propagate = False
    try:
        yield listening.said
    finally:
        log.removeHandler(listening)
