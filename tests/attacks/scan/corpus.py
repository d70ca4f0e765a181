"""Files of models, good and bad, each with the verdict that it must get. All are made here, when the tests
run."""

from __future__ import annotations

import bz2
import gzip
import lzma
import pickle
import subprocess
import zlib
from collections.abc import Iterator
from datetime import timedelta
from typing import NamedTuple

import numpy

from registry.scanning.verdict_names import CLEAN, CONTAINS_CODE, DANGEROUS, NOT_SCANNED
from tests.attacks.scan import builders as make
from tests.attacks.scan.builders import evil, plain

OBJECTS = numpy.array([make.Calls(subprocess.call, ["true"])], dtype=object)


class Case(NamedTuple):
    about: str
    name: str
    data: bytes
    verdict: str


Row = tuple[str, str, bytes]


def dangerous() -> Iterator[Case]:
    rows = [*dangerous_pickles(), *dangerous_archives(), *dangerous_documents()]
    yield from (Case(about, name, data, DANGEROUS) for about, name, data in rows)


def dangerous_pickles() -> list[Row]:
    rows = [(f"pickle of protocol {number}", "model.pkl", evil(number)) for number in range(6)]
    rows += [
        (f"pickle of protocol {number} under another name", "weights.dat", evil(number))
        for number in range(6)
    ]
    rows += [
        (f"a text's name on a pickle of protocol {number}", "vocab.txt", evil(number)) for number in (0, 1, 2)
    ]
    rows += [
        ("protocol 0 without an ending", "model.sav", evil(0)),
        ("two pickles", "a.pkl", plain() + evil()),
        ("two pickles of protocol 0", "a.dat", plain(0) + evil(0)),
        ("a memo that confuses readers", "a.pkl", make.confusing()),
        ("cut off after the call", "a.pkl", evil()[:-1]),
        ("raw numbers behind", "a.joblib", evil() + b"raw numbers"),
        ("a zip behind", "a.pkl", evil() + make.zipped({"harmless.txt": b"x"})),
        (
            "a name with dots",
            "a.pkl",
            b"\x80\x04\x8c\x05torch\x8c\x17serialization.os.system\x93\x8c\x04true\x85R.",
        ),
        (
            "a name from the memo",
            "a.pkl",
            b"\x80\x04\x8c\x06system\x94\x8c\x02os\x94h\x00\x93\x8c\x04true\x85R.",
        ),
        ("a name that is no name", "a.pkl", b"\x80\x04NN\x93\x8c\x04true\x85R."),
        ("INST", "a.pkl", b"(S'true'\nios\nsystem\n."),
        ("OBJ", "a.pkl", b"(cos\nsystem\nS'true'\no."),
    ]
    return rows


def dangerous_archives() -> list[Row]:
    return [
        ("legacy tar as .bin", "pytorch_model.bin", make.legacy_tar(evil(2))),
        ("legacy tar as .ckpt", "model.ckpt", make.legacy_tar(evil(2))),
        ("legacy tar as .pt", "a.pt", make.legacy_tar(evil(0))),
        ("old-style tar", "a.tar", make.tarred({"x": evil(2)}, style=1)),
        ("NeMo", "a.nemo", make.tarred({"w.ckpt": evil(2)})),
        ("tgz", "a.tgz", gzip.compress(make.tarred({"x.pkl": evil()}))),
        ("tar in zip", "a.zip", make.zipped({"t": make.tarred({"x": evil()})})),
        ("zip in tar in gzip", "a.bin", gzip.compress(make.tarred({"x": make.torch_zip(evil())}))),
        ("PyTorch zip", "a.pt", make.torch_zip(evil(2))),
        ("PyTorch zip under another name", "weights", make.torch_zip(evil(2))),
        ("pickle among the weights", "a.pt", make.torch_zip(plain(2), **{"net/data/1": evil(2)})),
        ("PyTorch before zips", "a.pth", make.legacy_torch(evil(2))),
        ("array of objects", "a.npy", make.npy(OBJECTS)),
        ("array of objects in npz", "a.npz", make.npz(x=OBJECTS)),
        ("gzip", "a.pkl.gz", gzip.compress(evil())),
        ("bzip2", "a.pkl", bz2.compress(evil())),
        ("xz", "a.dat", lzma.compress(evil())),
        ("zlib, as joblib compresses", "a.joblib", zlib.compress(evil())),
    ]


def dangerous_documents() -> list[Row]:
    return [
        ("Keras names Popen", "a.keras", make.keras(make.layer("subprocess", "Popen", args=["true"]))),
        ("Keras names exec", "a.keras", make.keras(make.layer("builtins", "exec", arg="1"))),
        ("Keras fetches a file", "a.keras", make.keras(make.layer("keras.utils", "get_file"))),
        (
            "Keras function of os",
            "a.keras",
            make.keras({"module": "os", "class_name": "function", "config": "system"}),
        ),
        ("YAML that calls", "config.yaml", b"a: !!python/object/apply:os.system ['true']\n"),
        ("Hydra target", "model_config.yaml", b"model:\n  _target_: subprocess.Popen\n  args: ['true']\n"),
        (
            "chat template that escapes",
            "tokenizer_config.json",
            make.as_json({"chat_template": "{{ ''.__class__.__mro__ }}"}),
        ),
        ("GGUF template that escapes", "a.gguf", make.gguf("{{ cycler.__init__.__globals__.os }}")),
        ("ONNX weights elsewhere", "a.onnx", make.onnx(weights="../../../etc/passwd")),
        ("ONNX weights by absolute path", "a.onnx", make.onnx(weights="/etc/passwd")),
        ("TensorFlow reads files", "saved_model.pb", make.saved_model("Const", "ReadFile")),
        (
            "TensorFlow writes files in a function",
            "saved_model.pb",
            make.saved_model("WriteFile", inside_function=True),
        ),
        ("tar that leads out", "a.tar", make.tarred({"../../.bashrc": b"x"})),
        ("tar with a link that leads out", "a.tar", make.tarred({}, links={"a": "../../etc"})),
        ("zip that leads out", "a.zip", make.zipped({"/etc/cron.d/x": b"x"})),
        (
            "skops names os",
            "a.skops",
            make.zipped({"schema.json": make.as_json({"__class__": "system", "__module__": "os"})}),
        ),
    ]


def with_code() -> Iterator[Case]:
    strange = pickle.dumps(make.Calls(timedelta, 1))
    lambda_layer = make.layer(
        "keras.layers", "Lambda", function={"class_name": "__lambda__", "config": {"code": "4wE="}}
    )
    mlmodel = "flavors:\n  python_function:\n    loader_module: {}\n    {}\n"
    rows = [
        ("Python", "code/loader.py", b"import os\n"),
        ("shell", "run", b"#!/bin/sh\n"),
        ("batch", "run.bat", b"echo\n"),
        ("library", "ops.so", b"\x7fELF\x02\x01"),
        ("library under another name", "ops.dat", b"\x7fELF\x02\x01"),
        ("Windows library", "ops.pyd", b"MZ"),
        ("jar", "a.jar", make.zipped({"META-INF/MANIFEST.MF": b"", "A.class": b"x"})),
        ("bytecode", "loader.pyc", b"\xa7\r\r\n"),
        ("notebook", "a.ipynb", make.as_json({"cells": [{"cell_type": "code"}]})),
        ("loader module", "MLmodel", mlmodel.format("loader", "data: data").encode()),
        ("code folder", "MLmodel", mlmodel.format("mlflow.sklearn", "code: code").encode()),
        (
            "model from code",
            "MLmodel",
            mlmodel.format("mlflow.pyfunc.model", "model_code_path: model.py").encode(),
        ),
        ("auto_map", "config.json", make.as_json({"auto_map": {"AutoModel": "modeling.Net"}})),
        ("unknown class", "a.pkl", strange),
        ("Keras Lambda", "a.keras", make.keras(lambda_layer)),
        ("Keras class of a stranger", "a.keras", make.keras(make.layer("mypackage.layers", "Mine"))),
        ("Keras Lambda in HDF5", "a.h5", b"\x89HDF\r\n\x1a\n" + make.as_json({"class_name": "Lambda"})),
        ("ONNX operators of its own", "a.onnx", make.onnx("com.example")),
        ("TensorFlow calls Python", "saved_model.pb", make.saved_model("EagerPyFunc")),
        ("packages from elsewhere", "requirements.txt", b"numpy\n--index-url http://example.org/\n"),
        ("packages by git", "conda.yaml", b"dependencies:\n  - pip:\n    - git+https://example.org/x\n"),
        (
            "skops of a stranger",
            "a.skops",
            make.zipped({"schema.json": make.as_json({"__class__": "A", "__module__": "mine"})}),
        ),
        ("TorchScript", "a.pt", make.torch_zip(plain(2), **{"net/code/__torch__.py": b"class A(Module):\n"})),
        ("Python in a tar", "a.nemo", make.tarred({"hook.py": b"print()\n"})),
        ("path file", "a.pth", b"import os; print()\n"),
        ("extension registry", "a.pkl", b"\x80\x02\x82\x01."),
        ("web page", "a.html", b"<script></script>"),
        ("import without a call", "a.pkl", b"cmymodule\nname\n."),
    ]
    yield from (Case(about, name, data, CONTAINS_CODE) for about, name, data in rows)


def not_scanned() -> Iterator[Case]:
    rows = [
        ("no pickle", "a.pkl", b"not a pickle at all"),
        ("raw numbers in between", "a.joblib", plain() + b"raw numbers"),
        ("unknown", "a.bin", b"\x08\x07 weights"),
        ("unknown text", "a.xyz", b"words"),
        ("7z", "a.7z", b"7z\xbc\xaf\x27\x1c"),
        ("LZ4", "a.pkl.lz4", b"\x04\x22\x4d\x18xx"),
        ("Zstandard", "a.zst", b"\x28\xb5\x2f\xfdxx"),
        ("half a zip", "a.zip", b"PK\x03\x04 and no more"),
        ("half a zlib stream", "a.joblib", zlib.compress(plain())[:-6]),
        ("something behind a zlib stream", "a.joblib", zlib.compress(plain()) + b"x"),
        ("half a gzip", "a.gz", gzip.compress(plain())[:-9]),
        ("HDF5", "a.h5", b"\x89HDF\r\n\x1a\n" + b"\0" * 100),
        ("safetensors cut short", "a.safetensors", make.safetensors(short_by=1)),
        ("safetensors with a gap", "a.safetensors", make.safetensors(gap=4)),
        ("safetensors with a zip inside", "a.safetensors", make.safetensors() + make.zipped({"a.txt": b"x"})),
        ("text with a zip behind", "a.txt", b"words\n" + make.zipped({"a.pkl": evil()})),
        ("array cut short", "a.npy", make.npy(numpy.zeros(4))[:-1]),
        ("broken JSON", "config.json", b"{"),
        (
            "a tar that goes on behind its end",
            "a.tar",
            make.tarred({"a.txt": b"x"}) + make.tarred({"b": evil()}),
        ),
        ("TensorFlow", "saved_model.pb", make.saved_model("Const", "MatMul")),
        ("no text", "a.txt", b"\xff\xfe\x00"),
        ("encrypted", "a.zip", _encrypted()),
        ("too deep", "a.gz", _deep()),
        ("GGUF cut short", "a.gguf", make.gguf("x")[:60]),
        ("ONNX cut short", "a.onnx", make.onnx()[:-3]),
        ("no ONNX", "a.onnx", b"words"),
    ]
    yield from (Case(about, name, data, NOT_SCANNED) for about, name, data in rows)


def clean() -> Iterator[Case]:
    mlmodel = b"flavors:\n  python_function:\n    loader_module: mlflow.sklearn\n    model_path: model.pkl\n"
    config = make.as_json({"model_type": "bert", "architectures": ["BertModel"]})
    template = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}{% endfor %}"
    rows = [
        ("empty", "__init__", b""),
        ("PyTorch zip", "a.pt", make.torch_zip(plain(2))),
        ("onnx", "a.onnx", make.onnx()),
        ("PyTorch before zips", "pytorch_model.bin", make.legacy_torch(plain(2))),
        ("safetensors", "a.safetensors", make.safetensors()),
        ("safetensors under another name", "weights", make.safetensors()),
        ("array", "a.npy", make.npy(numpy.zeros((4, 2)))),
        ("structured array", "a.npy", make.npy(numpy.zeros(2, dtype=[("a", "<f4"), ("b", "i8", (2,))]))),
        ("npz", "a.npz", make.npz(x=numpy.arange(3), y=numpy.ones(2))),
        ("GGUF", "a.gguf", make.gguf(template)),
        ("gzip", "a.pkl.gz", gzip.compress(plain())),
        ("bzip2", "a.pkl.bz2", bz2.compress(plain())),
        ("zlib", "a.joblib", zlib.compress(plain())),
        ("tar", "a.tar", make.tarred({"a.npy": make.npy(numpy.zeros(2)), "n.txt": b"x"})),
        ("Keras", "a.keras", make.keras(make.layer("keras.layers", "Dense", units=2))),
        ("MLmodel", "MLmodel", mlmodel),
        ("config", "config.json", config),
        ("tokenizer", "tokenizer_config.json", make.as_json({"chat_template": template})),
        ("ONNX with weights beside it", "a.onnx", make.onnx(weights="a.onnx.data")),
        ("ONNX with its own functions", "a.onnx", make.onnx("my.functions", defined=True)),
        ("words", "vocab.txt", b"cat\ndog\ncos\n"),
        ("words like opcodes", "labels.txt", b"cat\ndog\nfish\n"),
        ("notes", "README.md", b"# Notes\n"),
        ("packages", "requirements.txt", b"numpy==2.1\nmlflow>=3\n"),
        ("table", "a.csv", b"a,b\n1,2\n"),
        (
            "skops",
            "a.skops",
            make.zipped({"schema.json": make.as_json({"__class__": "SVC", "__module__": "sklearn.svm"})}),
        ),
        ("lines of JSON", "a.jsonl", b'{"a": 1}\n{"a": 2}\n'),
        ("notebook without code", "a.ipynb", make.as_json({"cells": []})),
    ]
    rows += [(f"pickle of protocol {number}", "model.pkl", plain(number)) for number in range(6)]
    yield from (Case(about, name, data, CLEAN) for about, name, data in rows)


def _encrypted() -> bytes:
    data = bytearray(make.zipped({"data.pkl": plain()}))
    for signature, offset in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
        data[data.index(signature) + offset] |= 1
    return bytes(data)


def _deep() -> bytes:
    data = plain()
    for _ in range(8):
        data = gzip.compress(data)
    return data


CASES = [*dangerous(), *with_code(), *not_scanned(), *clean()]
