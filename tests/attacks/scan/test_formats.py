"""What is rare or damaged in each format: it gets its verdict, and the reason is a sentence that says what is
wrong."""

from __future__ import annotations

import gzip
import io
import pickle
import struct
import subprocess
import tarfile
from pathlib import Path
from typing import NamedTuple

import pytest

from registry.scanning.file_scan import verdict_for_file
from registry.scanning.formats import archives, documents, protobuf
from registry.scanning.verdict_names import CLEAN, CONTAINS_CODE, DANGEROUS, NOT_SCANNED, Verdict, combine
from tests.attacks.scan import builders as make
from tests.attacks.scan.builders import message

NO_PROTOCOL_BUFFER = "It is not a protocol buffer."
ELSEWHERE = message(f1=2, f13=message(f1="location", f2="../../etc/passwd"))
LONG_PICKLE = pickle.dumps([b"x" * 10_000, make.Calls(subprocess.call, ["true"])])


class Case(NamedTuple):
    about: str
    name: str
    data: bytes
    expected: str


def scan(tmp_path: Path, name: str, data: bytes) -> Verdict:
    file = tmp_path / "file"
    file.write_bytes(data)
    return verdict_for_file(file, name)


def nested_graphs(depth: int) -> bytes:
    graph = message(f2="innermost")
    for _ in range(depth):
        graph = message(f1=message(f4="If", f5=message(f1="then_branch", f6=graph)))
    return message(f1=10, f7=graph)


def safetensors(header: bytes, size: int | None = None) -> bytes:
    return (len(header) if size is None else size).to_bytes(8, "little") + header


def gguf(body: bytes, *, version: int = 3, tensors: int = 0, keys: int = 0) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, tensors, keys) + body


def tar_member(kind: bytes, target: str = "") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        member = tarfile.TarInfo("deep/member")
        member.type, member.linkname = kind, target
        archive.addfile(member)
    return buffer.getvalue()


def imported(module: str, name: str) -> bytes:
    """A pickle that imports one name and calls nothing."""
    texts = [b"\x8c" + bytes([len(text.encode())]) + text.encode() for text in (module, name)]
    return b"\x80\x04" + b"".join(texts) + b"\x93."


def of_package(registered: str) -> bytes:
    return make.keras({"class_name": "Mine", "config": {}, "registered_name": registered})


def skops(module: str, name: str) -> bytes:
    return make.zipped({"schema.json": make.as_json({"__class__": name, "__module__": module})})


UNREADABLE = [
    Case("a message without a graph", "a.onnx", message(f1=10), "It is not an ONNX model."),
    Case("graphs in graphs", "a.onnx", nested_graphs(40), "Its graphs are nested too deep."),
    Case("field 0", "a.onnx", b"\x00\x01", NO_PROTOCOL_BUFFER),
    Case("a number without end", "a.onnx", b"\xff" * 12, NO_PROTOCOL_BUFFER),
    Case("half a number", "a.onnx", b"\x08", "It is not a protocol buffer, or it is cut off."),
    Case("no graphs at all", "saved_model.pb", message(f1=1), "It is not a SavedModel."),
    Case("a tiny header", "a.safetensors", safetensors(b"{"), "Its header has an impossible length."),
    Case("half a header", "a.safetensors", safetensors(b'{"a": {', 100), "Its header is cut off."),
    Case("a list as header", "a.safetensors", safetensors(b"[1, 2]"), "Its header is not a JSON object."),
    Case(
        "numbers as metadata",
        "a.safetensors",
        safetensors(b'{"__metadata__": {"a": 1}}'),
        "Its metadata is not text.",
    ),
    Case("version 1", "a.gguf", gguf(b"", version=1), "It is a GGUF of a version that the scanner does not"),
    Case(
        "65 dimensions",
        "a.gguf",
        gguf(struct.pack("<QcI", 1, b"w", 65), tensors=1),
        "It has a tensor of impossibly many dimensions.",
    ),
    Case(
        "a key of 1 TiB",
        "a.gguf",
        gguf(struct.pack("<Q", 2**40), keys=1),
        "A text in it is longer than the scanner reads.",
    ),
    Case(
        "a value of kind 99",
        "a.gguf",
        gguf(struct.pack("<QcI", 1, b"k", 99), keys=1),
        "It has a value of an unknown kind.",
    ),
    Case("NUL in a text", "a.txt", b"words\x00", "It has the name of a text file, but is not text."),
    Case(
        "a zip behind a script",
        "run.py",
        b"print()\n" + make.zipped({"a.txt": b"x"}),
        "A zip archive is hidden behind its beginning.",
    ),
    Case("a pipe in a tar", "a.tar", tar_member(tarfile.FIFOTYPE), "A device or a special file."),
]

JUDGED = [
    Case(
        "sparse weights elsewhere", "a.onnx", message(f1=10, f7=message(f15=message(f1=ELSEWHERE))), DANGEROUS
    ),
    Case(
        "weights of an attribute elsewhere",
        "a.onnx",
        message(f1=10, f7=message(f1=message(f4="Constant", f5=message(f1="value", f5=ELSEWHERE)))),
        DANGEROUS,
    ),
    Case("an absolute link in a tar", "a.tar", make.tarred({}, links={"a": "/etc/passwd"}), DANGEROUS),
    Case("a link in a folder leads out", "a.tar", make.tarred({}, links={"deep/a": "../../etc"}), DANGEROUS),
    Case("a hard link that leads out", "a.tar", tar_member(tarfile.LNKTYPE, "../passwd"), DANGEROUS),
    Case("a link inside a tar", "a.tar", make.tarred({"b.txt": b"x"}, links={"deep/a": "../b.txt"}), CLEAN),
    Case("long values, compressed", "a.pkl.gz", gzip.compress(LONG_PICKLE), DANGEROUS),
    Case("ONNX, compressed", "a.onnx.gz", gzip.compress(make.onnx()), CLEAN),
    Case("a module of another script", "a.pkl", imported("modèle", "Réseau"), CONTAINS_CODE),
    Case("internals of another script", "a.pkl", imported("modèle", "Réseau.__globals__"), DANGEROUS),
    Case("a class registered with Keras", "a.keras", of_package("my_package>Mine"), CONTAINS_CODE),
    Case("a class that Keras registered", "a.keras", of_package("keras>Mine"), CLEAN),
    Case("texts in skops", "a.skops", skops("builtins", "str"), CLEAN),
    Case(
        "one of several templates escapes",
        "tokenizer_config.json",
        make.as_json({"chat_template": [{"name": "tools", "template": "{{ ''.__class__ }}"}]}),
        DANGEROUS,
    ),
    Case("a model that is code", "MLmodel", b"model_code_path: model.py\nflavors: {}\n", CONTAINS_CODE),
]


@pytest.mark.parametrize("case", UNREADABLE, ids=[case.about for case in UNREADABLE])
def test_a_file_that_cannot_be_read_is_not_scanned_and_says_why(case: Case, tmp_path: Path) -> None:
    verdict = scan(tmp_path, case.name, case.data)
    assert (verdict.verdict, case.expected in verdict.note) == (NOT_SCANNED, True), verdict


@pytest.mark.parametrize("case", JUDGED, ids=[case.about for case in JUDGED])
def test_a_rare_content_gets_its_verdict(case: Case, tmp_path: Path) -> None:
    verdict = scan(tmp_path, case.name, case.data)
    assert verdict.verdict == case.expected, verdict


def test_a_file_that_is_gone_is_not_scanned(tmp_path: Path) -> None:
    verdict = verdict_for_file(tmp_path / "gone", "a.pkl")
    assert verdict == Verdict(NOT_SCANNED, note="It cannot be opened: No such file or directory.")


def test_a_name_that_the_pickle_duplicates_is_still_read(tmp_path: Path) -> None:
    assert scan(tmp_path, "a.pkl", b"\x80\x04\x8c\x02os2\x93.").findings == ("os.os",)


def test_a_document_beyond_its_limit_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MAX_JSON_BYTES", 2**20)
    verdict = scan(tmp_path, "a.json", b" " * (2**20 + 1))
    assert verdict.verdict == NOT_SCANNED
    assert verdict.note.startswith("It is longer than 1 MiB")


def test_a_name_beyond_its_limit_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protobuf, "MAX_FIELD_BYTES", 3)
    verdict = scan(tmp_path, "a.onnx", make.onnx())
    assert verdict == Verdict(NOT_SCANNED, note="A text in it is longer than the scanner reads.")


def test_a_large_member_of_a_tar_is_read_without_being_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "MAX_IN_MEMORY", 10)
    assert scan(tmp_path, "a.tar", make.tarred({"a.pkl": make.evil()})).verdict == DANGEROUS


def test_of_very_many_members_only_the_worst_verdict_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MAX_PARTS", 3)
    parts: list[tuple[str, Verdict]] = []
    archives._keep(parts, "evil.pkl", Verdict(DANGEROUS, ("os.system",)))
    for number in range(20):
        archives._keep(parts, f"{number}.txt", Verdict(CLEAN))
    assert len(parts) <= 3
    assert (combine(parts).verdict, combine(parts).findings) == (DANGEROUS, ("os.system",))
