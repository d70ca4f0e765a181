"""Judges one file of a model: recognises its format and finds what loading it would run. Nothing in it is
run.

A file is `clean` only if its format was recognised and it was read to its end. Every other file is
`not_scanned`, with the reason, unless something worse was found.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO

from registry.scanning.formats import archives, documents, graphs, keras, pickles, tensors
from registry.scanning.formats.source import Source, Unreadable
from registry.scanning.streams import COMPRESSED
from registry.scanning.verdict_names import CLEAN, CONTAINS_CODE, NOT_SCANNED, Verdict, combine

SCRIPTS = (
    ".py",
    ".pyw",
    ".pyi",
    ".pyx",
    ".sh",
    ".bash",
    ".zsh",
    ".fish",
    ".ps1",
    ".bat",
    ".cmd",
    ".js",
    ".mjs",
    ".cjs",
    ".ts",
    ".rb",
    ".pl",
    ".r",
    ".lua",
    ".jl",
    ".php",
    ".tcl",
    ".vbs",
    ".c",
    ".cc",
    ".cpp",
    ".cu",
    ".h",
    ".html",
    ".htm",
    ".svg",
    ".mk",
)
PROGRAMS = (
    ".so",
    ".pyd",
    ".dll",
    ".dylib",
    ".exe",
    ".pyc",
    ".pyo",
    ".class",
    ".o",
    ".a",
    ".wasm",
    ".jar",
    ".whl",
    ".egg",
    ".msi",
    ".deb",
    ".rpm",
)
# ELF, Mach-O of either word size and byte order, Java classes and universal Mach-O, WebAssembly.
PROGRAM_MAGIC = (
    b"\x7fELF",
    b"\xfe\xed\xfa\xce",
    b"\xfe\xed\xfa\xcf",
    b"\xce\xfa\xed\xfe",
    b"\xcf\xfa\xed\xfe",
    b"\xca\xfe\xba\xbe",
    b"\x00asm",
)
UNREAD_MAGIC = {
    b"7z\xbc\xaf": "7z",
    b"\x04\x22\x4d\x18": "LZ4",
    b"\x28\xb5\x2f\xfd": "Zstandard",
    b"Rar!": "RAR",
    b"\x1f\x9d": "compress",
}
HDF5 = b"\x89HDF\r\n\x1a\n"
SCRIPT = "Source code. It runs when something imports or starts it."
PROGRAM = "A compiled program or library. It runs when something loads or starts it."
UNKNOWN = "The scanner does not know this format."


def verdict_for_file(path: Path, name: str) -> Verdict:
    """Judge the file `path`, which is called `name` in its model."""
    try:
        return judge(Source(name, lambda: path.open("rb"), path.stat().st_size))
    except OSError as error:
        return Verdict(NOT_SCANNED, note=f"It cannot be opened: {error.strerror}.")


def judge(source: Source) -> Verdict:
    """Judges a file, or a member of an archive. It never raises Exception: the file is untrusted, and any
    parser may fail."""
    try:
        verdict = _judge(source)
        if verdict.verdict in (CLEAN, CONTAINS_CODE) and _is_zip_too(source):
            # Programs that look for a zip at the end of a file would take it for something else than it was
            # read as.
            return combine(
                [
                    ("", verdict),
                    ("", Verdict(NOT_SCANNED, note="A zip archive is hidden behind its beginning.")),
                ]
            )
        return verdict
    except (MemoryError, RecursionError):
        # RecursionError is raised by JSON of a million nested lists, for example.
        return Verdict(NOT_SCANNED, note="It needs more memory than the scanner may take.")
    except Unreadable as error:
        return Verdict(NOT_SCANNED, note=str(error))
    except Exception as error:
        return Verdict(NOT_SCANNED, note=f"It cannot be read: {type(error).__name__}: {str(error)[:200]}")


def _judge(source: Source) -> Verdict:
    if source.size == 0:
        return Verdict(CLEAN)
    head = source.head()
    # A name proves nothing: a pickle called model.py is judged both as a script and as a pickle.
    parts = [("", part) for part in (_as_code(source, head), _as_data(source, head)) if part is not None]
    return combine(parts) if parts else Verdict(NOT_SCANNED, note=UNKNOWN)


def _as_code(source: Source, head: bytes) -> Verdict | None:
    """Returns the verdict on the file as a program, by its name or first bytes; None if it is no program."""
    if source.extension in PROGRAMS or head.startswith(PROGRAM_MAGIC) or _is_windows_program(head):
        return Verdict(CONTAINS_CODE, note=PROGRAM)
    if source.extension in SCRIPTS or head.startswith(b"#!") or source.base in ("makefile", "dockerfile"):
        return Verdict(CONTAINS_CODE, note=SCRIPT)
    # PyTorch's ending for weights is also Python's for path files, of which `site` runs lines that begin with
    # `import`.
    if source.extension == ".pth" and head.lstrip().startswith((b"import ", b"import\t")):
        return Verdict(CONTAINS_CODE, note=SCRIPT)
    return None


def _is_windows_program(head: bytes) -> bool:
    """Whether these are the first bytes of a Windows program. MZ alone proves nothing: of random data one in
    65,536 files begins so."""
    at = int.from_bytes(head[60:64], "little")
    # Byte 60 holds the offset of the PE header. If that lies beyond the bytes read here, the file counts as a
    # program unproven.
    return head.startswith(b"MZ") and (head[at : at + 2] == b"PE" or at >= len(head) - 2 > 62)


def _as_data(source: Source, head: bytes) -> Verdict | None:
    """Returns the verdict on the file as data, by its first bytes or else by its name; None if the format is
    unknown."""
    for magic, reader in _BY_MAGIC:
        if head.startswith(magic):
            return reader(source)
    for magic, kind in UNREAD_MAGIC.items():
        if head.startswith(magic):
            return Verdict(
                NOT_SCANNED, note=f"It is compressed in a way that the scanner does not read ({kind})."
            )
    for magic, opened in COMPRESSED.items():
        if head.startswith(magic):
            return _compressed(source, opened)
    if archives.is_tar(head):
        return archives.scan_tar(source, judge)
    # The opcode PROTO and its argument, the protocol; 5 is the highest.
    if head[:1] == b"\x80" and head[1:2] <= b"\x05":
        return pickles.scan_pickles(source)
    if tensors.is_safetensors(source, head):
        return tensors.scan_safetensors(source)
    # Pickles of the oldest protocols have no signature: any name may hide one, also of a text.
    return pickles.scan_if_pickle(source) or _by_name(source)


def _by_name(source: Source) -> Verdict | None:
    if source.extension in pickles.NAMES:
        return pickles.scan_pickles(source)
    if source.extension in documents.JSON:
        return documents.scan_json(source)
    if source.extension in documents.YAML or source.base == "mlmodel":
        return documents.scan_yaml(source)
    if source.extension == ".onnx":
        return graphs.scan_onnx(source)
    if source.base == "saved_model.pb":
        return graphs.scan_saved_model(source)
    if documents.is_prose(source):
        return documents.scan_prose(source)
    return None


def _compressed(source: Source, opened: Callable[[IO[bytes]], IO[bytes]]) -> Verdict | None:
    """Judges the content of a compressed stream. If it cannot be unpacked, it may be a text that begins like
    one."""
    # Without the ending of the compression: the inner name decides about formats without a signature, as in
    # model.json.gz.
    name = source.name
    for ending in (".gz", ".bz2", ".xz", ".lzma", ".z"):
        name = name.removesuffix(ending)
    inner = source.inner(f"{name.removesuffix('.tgz')}", lambda: opened(source.open()))
    try:
        inner.head(1)
    except (OSError, ValueError, EOFError) as error:
        other = pickles.scan_if_pickle(source) or _by_name(source)
        return other or Verdict(NOT_SCANNED, note=f"It cannot be unpacked: {str(error)[:200]}")
    verdict = judge(inner)
    if verdict.verdict == CLEAN:
        # The checksum stands at the end, and whatever follows it.
        _read_to_its_end(inner)
    return verdict


def _read_to_its_end(source: Source) -> None:
    with source.open() as file:
        while file.read(1024 * 1024):
            pass


def _zip(source: Source) -> Verdict:
    return archives.scan_zip(source, judge)


def _is_zip_too(source: Source) -> bool:
    """Whether a file that was read as something else ends as a zip does."""
    head = source.head(4)
    # The record that ends a zip archive has 22 bytes.
    if head in (archives.ZIP, archives.EMPTY_ZIP) or source.size is None or source.size < 22:
        return False
    with source.open() as file:
        return file.seekable() and zipfile.is_zipfile(file)


_BY_MAGIC: tuple[tuple[bytes, Callable[[Source], Verdict]], ...] = (
    (archives.ZIP, _zip),
    (archives.EMPTY_ZIP, _zip),
    (tensors.NUMPY, tensors.scan_numpy),
    (tensors.GGUF, tensors.scan_gguf),
    (HDF5, keras.scan_hdf5),
)
