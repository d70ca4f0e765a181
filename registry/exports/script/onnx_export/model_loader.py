"""Loads the model in any format that PyTorch saves. Unpickling runs code, so this happens in a job and never
on the hub."""

from __future__ import annotations

import pickle
import re
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from .code import OTHER_WAYS, error_text, find_code, make, missing_module
from .report import ExportRefusal
from .request import ExportRequest
from .run_log import write_line

# What DistributedDataParallel, torch.compile and Lightning put before the names of weights.
PREFIXES = ("", "module.", "_orig_mod.", "module._orig_mod.", "model.", "net.")
MLMODEL = "MLmodel"
WORDS = {
    "torchscript": "a TorchScript module",
    "program": "a torch.export program",
    "module": "a pickled module",
    "state_dict": "weights, and a factory for the module",
}


@dataclass(frozen=True)
class Loaded:
    """A loaded model. `module` is callable and in eval mode if it has one; `program` is set if the file
    contains a torch.export program."""

    kind: str
    module: Any
    program: Any = None


def load(request: ExportRequest, folder: Path) -> Loaded:
    """Loads `request.file` below `folder`. Raises ExportRefusal."""
    path = _resolve(folder / request.file, folder)
    kind = _kind(path)
    if kind == "torchscript":
        return _describe(Loaded(kind, _read_file(path, torch.jit.load).eval()))
    if kind == "program":
        program = _read_file(path, torch.export.load)
        return _describe(Loaded(kind, program.module(), program))
    return _describe(_read_pickle(path, request))


def _describe(loaded: Loaded) -> Loaded:
    for parameter in loaded.module.parameters():
        parameter.requires_grad_(False)
    write_line(f"Loaded {WORDS[loaded.kind]}.")
    return loaded


def _resolve(path: Path, folder: Path) -> Path:
    """Returns the file to load. For an MLmodel it is the file beside it, and the logged code becomes
    importable."""
    if path.name != MLMODEL:
        return path
    find_code([path.parent / "code"])
    for name in ("data/model.pt2", "data/model.pth"):
        if (path.parent / name).is_file():
            return path.parent / name
    raise ExportRefusal(
        f"{path.relative_to(folder)} is no MLflow model of the flavor pytorch: there is no data/model.pt2 "
        "and no data/model.pth "
        "beside it.",
        "file",
    )


def _kind(path: Path) -> str:
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            # Without the folder at the top of the archive, whose name differs from file to file.
            names = [name.partition("/")[2] for name in archive.namelist()]
        # data.pkl is in TorchScript files too; these two are only in them.
        if "constants.pkl" in names or any(name.startswith("code/") for name in names):
            return "torchscript"
        if "archive_format" in names or "serialized_exported_program.json" in archive.namelist():
            return "program"
        if "data.pkl" in names:
            return "pickle"
    elif path.open("rb").read(1) == b"\x80":
        return "pickle"
    raise ExportRefusal(
        f"{path.name} is not a PyTorch model: it is neither a TorchScript file, a torch.export program nor "
        "what torch.save "
        "writes. Choose the version's file that is.",
        "file",
    )


def _read_file(path: Path, how: Any) -> Any:
    try:
        return how(str(path))
    except Exception as error:
        raise ExportRefusal(f"{path.name} cannot be loaded: {error_text(error)}", "file") from error


def _read_pickle(path: Path, request: ExportRequest) -> Loaded:
    saved = _unpickle(path)
    if isinstance(saved, torch.nn.Module):
        return Loaded("module", saved.eval())
    # Checkpoints of Lightning and others hold the weights under `state_dict`.
    weights = saved.get("state_dict", saved) if isinstance(saved, dict) else None
    if not weights or not all(isinstance(value, torch.Tensor) for value in weights.values()):
        raise ExportRefusal(
            f"{path.name} holds a {type(saved).__name__}, neither a module nor a state dict of tensors.",
            "file",
        )
    if not request.factory:
        raise ExportRefusal(
            f"{path.name} holds only weights (a state dict of {len(weights)} tensors); name the function of "
            "the run's source "
            "that makes the module, as module:function.",
            "factory",
        )
    module = make(request.factory)
    if not isinstance(module, torch.nn.Module):
        raise ExportRefusal(
            f"{request.factory} gives a {type(module).__name__}, not a torch.nn.Module.", "factory"
        )
    _fill(module, weights, path.name, request.factory)
    return Loaded("state_dict", module.eval())


def _unpickle(path: Path) -> object:
    """Loads a pickle without running code if possible, otherwise with `weights_only=False`, the default of
    earlier versions of PyTorch."""
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        write_line(f"{path.name} holds more than tensors: loading it runs code of its own, as this run.")
    except Exception as error:
        raise ExportRefusal(f"{path.name} cannot be loaded: {error_text(error)}", "file") from error
    try:
        return torch.load(path, map_location="cpu", weights_only=False)
    except ModuleNotFoundError as error:
        raise ExportRefusal(missing_module(error), "file") from error
    except AttributeError as error:
        raise ExportRefusal(_missing_class(path, error), "file") from error
    except Exception as error:
        raise ExportRefusal(f"{path.name} cannot be loaded: {error_text(error)}", "file") from error


def _missing_class(path: Path, error: AttributeError) -> str:
    match = re.search(r"attribute '(\w+)' on <module '([\w.]+)'", str(error))
    name, module = match.groups() if match else (str(error), "")
    if module == "__main__":
        return (
            f"{path.name} needs the class {name!r}, which was defined in the script that saved it, and a "
            "pickle only remembers a "
            f"class by its module; move {name!r} to a module of its own and train again, or {OTHER_WAYS}."
        )
    return f"{path.name} needs {name!r} of the module {module!r}, which no longer contains it; {OTHER_WAYS}."


def _fill(module: Any, weights: dict[str, object], name: str, factory: str) -> None:
    expected = set(module.state_dict())
    for prefix in PREFIXES:
        stripped = {
            key.removeprefix(prefix): value for key, value in weights.items() if key.startswith(prefix)
        }
        if stripped.keys() == expected:
            weights = stripped
            break
    try:
        # With strict=False names that do not match are returned; sizes that differ still raise an error.
        mismatch = module.load_state_dict(weights, strict=False)
    except RuntimeError as error:
        wrong = next(
            (line.strip() for line in str(error).splitlines() if "size mismatch" in line), error_text(error)
        )
        raise ExportRefusal(
            f"The weights of {name} do not fit the module of {factory}: {wrong.rstrip('.')}.", "factory"
        ) from error
    if mismatch.missing_keys or mismatch.unexpected_keys:
        raise ExportRefusal(
            f"The weights of {name} do not fit the module of {factory}: {_key_difference(mismatch)}.",
            "factory",
        )


def _key_difference(mismatch: Any) -> str:
    parts = []
    for word, keys in (
        ("it also wants", mismatch.missing_keys),
        ("it does not know", mismatch.unexpected_keys),
    ):
        if keys:
            parts.append(f"{word} {', '.join(keys[:3])}{f' and {len(keys) - 3} more' if keys[3:] else ''}")
    return " and ".join(parts)
