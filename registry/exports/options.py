"""The options of an export, and the checks that are possible without loading the model."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import PurePosixPath
from typing import Any

from environments.curated import ONNX
from jobs import outputs
from jobs.models import Artifact
from registry.errors import RegistryError
from registry.exports.notation import check_axes, read_dynamic, read_inputs
from registry.models import ModelFile, ModelVersion, ReferencedFile
from trainhub_launch.json_types import JsonObject

FACTORY = re.compile(r"[A-Za-z_][\w.]{0,199}:[A-Za-z_]\w{0,99}\Z", re.ASCII)
MLMODEL = "MLmodel"
# What PyTorch writes is called so, the likeliest first.
SAVED = (".pt2", ".pt", ".pth", ".ts", ".ckpt", ".bin", ".pkl")
EXAMPLES = (".npz", ".npy", ".pt", ".pth")
MIN_OPSET, HIGHEST_OPSET = 18, 23
RELATIVE, ABSOLUTE = 1e-4, 1e-5


@dataclass(frozen=True)
class Options:
    """What to export, and how. `file`: path in the version. `inputs` and `dynamic`: lines in the format of
    `notation`.

    `example`: instead of `inputs`, a file of the version or of its run's outputs that contains the input.
    `factory`: "module:function" of the run's source. `cluster`: "" = the hub chooses.
    `relative` and `absolute`: tolerances.
    """

    file: str
    inputs: tuple[str, ...] = ()
    example: str = ""
    dynamic: tuple[str, ...] = ()
    factory: str = ""
    relative: float = RELATIVE
    absolute: float = ABSOLUTE
    opset: int | None = None
    cluster: str = ""
    environment: str = ONNX

    def to_json(self) -> JsonObject:
        return {**asdict(self), "inputs": list(self.inputs), "dynamic": list(self.dynamic)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Options:
        return cls(**{**stored, "inputs": tuple(stored["inputs"]), "dynamic": tuple(stored["dynamic"])})


def candidates(version: ModelVersion) -> list[str]:
    """Returns paths of files that may contain a PyTorch model, the likeliest first."""
    files = [file for file in version.all_files if _order(file) is not None]
    return [
        file.path for file in sorted(files, key=lambda file: (_order(file) or 0, -file.size_bytes, file.path))
    ]


def examples(version: ModelVersion) -> dict[str, ModelFile | Artifact]:
    """Returns name -> file for files that may contain an example input: files of the version, and outputs of
    its run as outputs/PATH."""
    files: dict[str, ModelFile | Artifact] = {
        file.path: file for file in version.files.all() if file.path.endswith(EXAMPLES)
    }
    for artifact in outputs.latest(version.run) if version.run else ():
        if artifact.path.endswith(EXAMPLES):
            files.setdefault(f"outputs/{artifact.path}", artifact)
    return files


def check(options: Options, version: ModelVersion) -> None:
    """Checks the options against the version. Raises RegistryError naming the field."""
    _check_file(options, version)
    inputs, dynamic = read_inputs(options.inputs), read_dynamic(options.dynamic)
    check_axes(dynamic, inputs)
    if inputs and options.example:
        raise RegistryError("example", "is given beside typed inputs; give one of the two")
    # A torch.export program contains its example, and MLmodel may lead to such a program.
    if not inputs and not options.example and not options.file.endswith((".pt2", MLMODEL)):
        raise RegistryError(
            "inputs", "is required: type its shape, as 1x64 float32, or choose a file that holds an example"
        )
    if options.example and options.example not in examples(version):
        available = ", ".join(list(examples(version))[:5]) or "none that ends in " + ", ".join(EXAMPLES)
        raise RegistryError(
            "example",
            f"{options.example!r} is no such file of the version or its run; there are: {available}",
        )
    if options.factory and not FACTORY.match(options.factory):
        raise RegistryError(
            "factory", f"{options.factory[:60]!r} cannot be read; write MODULE:FUNCTION, as model:make_model"
        )
    for name, value in (("relative", options.relative), ("absolute", options.absolute)):
        if not math.isfinite(value) or not 0 <= value <= 1000:
            raise RegistryError(name, "must be a number from 0 to 1000")
    if options.opset is not None and not MIN_OPSET <= options.opset <= HIGHEST_OPSET:
        raise RegistryError(
            "opset", f"must be from {MIN_OPSET} to {HIGHEST_OPSET}, or empty for the exporter's own choice"
        )


def _check_file(options: Options, version: ModelVersion) -> None:
    paths = [file.path for file in version.all_files]
    if options.file in paths:
        return
    available = ", ".join(candidates(version)[:5] or paths[:5])
    if not options.file and not candidates(version):
        raise RegistryError(
            "file", f"this version has no file that PyTorch writes ({', '.join(SAVED)}); it has: {available}"
        )
    raise RegistryError("file", f"{options.file!r} is not a file of this version; choose one of: {available}")


def _order(file: ModelFile | ReferencedFile) -> int | None:
    """Returns the rank of a file, lower is likelier, or None if PyTorch does not write such files."""
    path = PurePosixPath(file.path)
    if path.name == MLMODEL:
        return 1
    # Even ranks leave room for MLmodel between .pt2 (0) and .pt (2).
    return {suffix: 2 * rank for rank, suffix in enumerate(SAVED)}.get(path.suffix)
