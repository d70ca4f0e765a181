"""Small makers of model files. A payload calls `subprocess.call(["true"])`, or touches a file in a temporary
folder."""

from __future__ import annotations

import io
import json
import pickle
import struct
import subprocess
import tarfile
import zipfile
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import numpy

TORCH_MAGIC = 0x1950A86A20F9469CFC6C


class Calls:
    """Pickles as a call of `what`: what loading it would do."""

    def __init__(self, what: Any, *arguments: Any) -> None:
        self.call = what, arguments

    def __reduce__(self) -> Any:
        return self.call


def evil(protocol: int = 4) -> bytes:
    return pickle.dumps(Calls(subprocess.call, ["true"]), protocol)


def plain(protocol: int = 4) -> bytes:
    return pickle.dumps({"weights": [1.0, 2.0], "kind": OrderedDict(a=1), "names": ["a", "b"]}, protocol)


def confusing() -> bytes:
    """Two pickles; a reader that keeps the memo of the first takes the second's os.system for
    collections.OrderedDict."""
    first = b"\x80\x04\x8c\x0bcollections\x94\x8c\x0bOrderedDict\x94\x93)R."
    return first + b"\x80\x04\x8c\x02os\x940\x8c\x06system\x940h\x00h\x01\x93\x8c\x04true\x85R."


def zipped(files: Mapping[str, bytes], *, compressed: bool = False) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def tarred(
    files: Mapping[str, bytes], *, links: Mapping[str, str] | None = None, style: int = tarfile.PAX_FORMAT
) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=style) as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
        for name, target in (links or {}).items():
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, target
            archive.addfile(info)
    return buffer.getvalue()


def legacy_tar(payload: bytes) -> bytes:
    """A checkpoint as PyTorch 0.1 wrote it, which torch.load still reads."""
    empty = pickle.dumps(0, 2)
    storages = empty + pickle.dumps([], 2)
    return tarred(
        {"sys_info": pickle.dumps({}, 2), "pickle": payload, "tensors": empty, "storages": storages}
    )


def legacy_torch(payload: bytes, weights: bytes = b"\x07" * 100) -> bytes:
    """Five pickles and raw weights, as torch.save wrote until 1.6."""
    heads = [pickle.dumps(item, 2) for item in (TORCH_MAGIC, 1001, {"little_endian": True})]
    return b"".join([*heads, payload, pickle.dumps(["0"], 2), weights])


def torch_zip(payload: bytes, **more: bytes) -> bytes:
    return zipped(
        {
            "net/data.pkl": payload,
            "net/byteorder": b"little",
            "net/version": b"3\n",
            "net/data/0": b"\0" * 64,
            **more,
        }
    )


def npy(array: Any) -> bytes:
    buffer = io.BytesIO()
    numpy.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


def npz(**arrays: Any) -> bytes:
    return zipped({f"{name}.npy": npy(array) for name, array in arrays.items()})


def as_json(data: Any) -> bytes:
    return json.dumps(data).encode()


def keras(*layers: Any) -> bytes:
    config = {
        "module": "keras",
        "class_name": "Sequential",
        "config": {"layers": list(layers)},
        "registered_name": None,
    }
    return zipped(
        {
            "config.json": as_json(config),
            "metadata.json": as_json({"keras_version": "3.11.3"}),
            "model.weights.h5": b"\x89HDF\r\n\x1a\n" + b"\0" * 64,
        }
    )


def layer(module: str, name: str, **config: Any) -> dict[str, Any]:
    return {"module": module, "class_name": name, "config": config, "registered_name": None}


def safetensors(*, short_by: int = 0, gap: int = 0) -> bytes:
    header = as_json(
        {
            "__metadata__": {"format": "pt"},
            "a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
            "b": {"dtype": "BF16", "shape": [2, 2], "data_offsets": [8 + gap, 16 + gap]},
        }
    )
    return len(header).to_bytes(8, "little") + header + b"\x01" * (16 + gap - short_by)


def gguf(template: str) -> bytes:
    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value)) + value.encode()

    keys = [
        text("general.architecture") + struct.pack("<I", 8) + text("llama"),
        text("tokenizer.chat_template") + struct.pack("<I", 8) + text(template),
        text("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, 2) + text("a") + text("b"),
        text("llama.block_count") + struct.pack("<II", 4, 1),
        text("tokenizer.ggml.scores") + struct.pack("<IIQ2f", 9, 6, 2, 0.5, 1.5),
    ]
    tensor = text("token_embd.weight") + struct.pack("<IQQIQ", 2, 2, 2, 0, 0)
    return b"GGUF" + struct.pack("<IQQ", 3, 1, len(keys)) + b"".join(keys) + tensor + b"\0" * 64


def message(**fields: Any) -> bytes:
    """A protocol buffer of fields f1, f2, …: numbers, texts, messages, or lists of them."""
    parts = []
    for name, value in fields.items():
        number = int(name[1:])
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, int):
                parts.append(_varint(number << 3) + _varint(item))
            else:
                data = item.encode() if isinstance(item, str) else item
                parts.append(_varint(number << 3 | 2) + _varint(len(data)) + data)
    return b"".join(parts)


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def onnx(domain: str = "", weights: str = "", *, defined: bool = False) -> bytes:
    """A model of one operator; `weights`: the file in which its initializer lies."""
    node = message(f1="x", f2="y", f4="Relu", **({"f7": domain} if domain else {}))
    inner = message(f4="If", f5=message(f1="then_branch", f6=message(f1=[node])))
    elsewhere = {"f13": message(f1="location", f2=weights), "f14": 1}
    tensor = message(f1=2, f8="w", **(elsewhere if weights else {"f9": b"\0" * 8}))
    functions = {"f25": message(f1="Relu", f10=domain, f7=message(f4="Add"))} if defined else {}
    return message(
        f1=10, f8=message(f1="", f2=18), f7=message(f1=[node, inner], f2="graph", f5=tensor), **functions
    )


def saved_model(*operators: str, inside_function: bool = False) -> bytes:
    nodes = [message(f1=f"n{number}", f2=name) for number, name in enumerate(operators)]
    graph = (
        message(f2=message(f1=message(f1=message(f1="f"), f3=nodes)))
        if inside_function
        else message(f1=nodes)
    )
    return message(f1=1, f2=message(f2=graph))
