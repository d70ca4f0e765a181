"""S13: that a file is called dangerous matters, because loading it runs its payload. Shown with the real
libraries.

Each payload only touches a file in the test's own folder.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy
import pytest

from registry.scanning.file_scan import verdict_for_file
from registry.scanning.verdict_names import CLEAN, DANGEROUS
from tests.attacks.scan import builders as make

LOADERS = {
    "torch": "import torch; torch.load({path!r}, weights_only=False)",
    "joblib": "import joblib; joblib.load({path!r})",
    "numpy": "import numpy; numpy.load({path!r}, allow_pickle=True)",
    "pickle": "import pickle; pickle.load(open({path!r}, 'rb'))",
    "twice": "import pickle; file = open({path!r}, 'rb'); pickle.load(file); pickle.load(file)",
    "yaml": "import yaml; yaml.load(open({path!r}), yaml.UnsafeLoader)",
}


def touching(mark: Path, protocol: int = 2) -> bytes:
    return pickle.dumps(make.Calls(os.mkdir, str(mark)), protocol)


def two_pickles(mark: Path) -> bytes:
    """As `make.confusing`, with a payload that makes a folder."""
    text = str(mark).encode()
    first = b"\x80\x04\x8c\x0bcollections\x94\x8c\x0bOrderedDict\x94\x93)R."
    return (
        first
        + b"\x80\x04\x8c\x02os\x940\x8c\x05mkdir\x940h\x00h\x01\x93\x8c"
        + bytes([len(text)])
        + text
        + b"\x85R."
    )


FILES: list[tuple[str, str, Callable[[Path], bytes]]] = [
    ("torch", "pytorch_model.bin", lambda mark: make.legacy_tar(touching(mark))),
    ("torch", "model.ckpt", lambda mark: make.legacy_tar(touching(mark, 0))),
    ("torch", "model.pt", lambda mark: make.torch_zip(touching(mark))),
    ("torch", "model.pth", lambda mark: make.legacy_torch(touching(mark))),
    ("joblib", "weights.dat", lambda mark: zlib.compress(touching(mark))),
    ("joblib", "model.sav", lambda mark: touching(mark, 0)),
    ("numpy", "a.npy", lambda mark: make.npy(numpy.array([make.Calls(os.mkdir, str(mark))], dtype=object))),
    ("pickle", "vocab.txt", lambda mark: touching(mark, 0)),
    ("twice", "model.pkl", two_pickles),
    ("yaml", "config.yaml", lambda mark: f"a: !!python/object/apply:os.mkdir [{mark}]\n".encode()),
]


@pytest.mark.parametrize(
    ("loader", "name", "build"), FILES, ids=[f"{loader}-{name}" for loader, name, _ in FILES]
)
def test_loading_a_dangerous_file_runs_its_payload(
    loader: str, name: str, build: Callable[[Path], bytes], tmp_path: Path, frameworks_python: str
) -> None:
    mark, file = tmp_path / "ran", tmp_path / name
    file.write_bytes(build(mark))
    assert verdict_for_file(file, name).verdict == DANGEROUS
    assert not mark.exists(), "the scan itself must run nothing"
    load = LOADERS[loader].format(path=str(file))
    subprocess.run([frameworks_python, "-c", load], capture_output=True, timeout=240, check=False)
    assert mark.is_dir()


MAKE_REAL_FILES = """
import os, sys, warnings
warnings.filterwarnings("ignore")
os.environ["KERAS_BACKEND"] = "torch"
import joblib, keras, numpy, pickle, torch
net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3))
adam = torch.optim.Adam(net.parameters())
torch.save(net.state_dict(), "weights.pt")
torch.save(net.state_dict(), "pytorch_model.bin", _use_new_zipfile_serialization=False)
torch.save({"model": net.state_dict(), "adam": adam.state_dict(), "type": torch.bfloat16}, "checkpoint.ckpt")
pickle.dump({"a": numpy.arange(5), "b": numpy.float32(1)}, open("numbers.pkl", "wb"))
joblib.dump({"depth": 3}, "options.joblib", compress=3)
numpy.savez_compressed("arrays.npz", a=numpy.ones(3))
model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(3, activation="relu"),
    keras.layers.Dropout(0.1)])
model.compile("adam", "mse")
model.save("model.keras")
"""


def test_what_the_libraries_write_of_themselves_is_clean(tmp_path: Path, frameworks_python: str) -> None:
    """A scan that calls everything suspicious teaches people to ignore it."""
    done = subprocess.run(
        [frameworks_python, "-c", MAKE_REAL_FILES],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = {file.name: verdict_for_file(file, file.name) for file in sorted(tmp_path.iterdir())}
    assert len(found) == 7
    assert {name: told for name, told in found.items() if told.verdict != CLEAN} == {}
