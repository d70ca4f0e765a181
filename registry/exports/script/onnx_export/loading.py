"""Loading the model, whatever way it was saved. A pickle runs code: this is why it happens in a job, never on
the hub."""

from __future__ import annotations

import pickle
import re
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from .code import OTHER_WAYS, find_code, make, missing, told
from .reporting import Refusal
from .told import say
from .wanted import Wanted

PREFIXES = ("", "module.", "_orig_mod.", "module._orig_mod.", "model.", "net.")
"""What DistributedDataParallel, torch.compile and Lightning put before the names of weights."""
MLMODEL = "MLmodel"
WORDS = {
    "torchscript": "a TorchScript module",
    "program": "a torch.export program",
    "module": "a pickled module",
    "state_dict": "weights, and a factory for the module",
}


@dataclass(frozen=True)
class Loaded:
    """`module` is called with the inputs, in eval mode where it has one; `program` where it was one
    already."""

    kind: str
    module: Any
    program: Any = None


def load(wanted: Wanted, folder: Path) -> Loaded:
    """Raises Refusal."""
    path = _resolved(folder / wanted.file, folder)
    kind = _kind(path)
    if kind == "torchscript":
        return _told(Loaded(kind, _opened(path, torch.jit.load).eval()))
    if kind == "program":
        program = _opened(path, torch.export.load)
        return _told(Loaded(kind, program.module(), program))
    return _told(_of_pickle(path, wanted))


def _told(loaded: Loaded) -> Loaded:
    for parameter in loaded.module.parameters():
        parameter.requires_grad_(False)
    say(f"Loaded {WORDS[loaded.kind]}.")
    return loaded


def _resolved(path: Path, folder: Path) -> Path:
    """The file itself, of an MLflow model too; the code that was logged with that can then be imported."""
    if path.name != MLMODEL:
        return path
    find_code([path.parent / "code"])
    for name in ("data/model.pt2", "data/model.pth"):
        if (path.parent / name).is_file():
            return path.parent / name
    raise Refusal(
        f"{path.relative_to(folder)} is no MLflow model of the flavor pytorch: there is no data/model.pt2 "
        "and no data/model.pth "
        "beside it.",
        "file",
    )


def _kind(path: Path) -> str:
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            names = [name.partition("/")[2] for name in archive.namelist()]
        if "constants.pkl" in names or any(name.startswith("code/") for name in names):
            return "torchscript"
        if "archive_format" in names or "serialized_exported_program.json" in archive.namelist():
            return "program"
        if "data.pkl" in names:
            return "pickle"
    elif path.open("rb").read(1) == b"\x80":
        return "pickle"
    raise Refusal(
        f"{path.name} is not a PyTorch model: it is neither a TorchScript file, a torch.export program nor "
        "what torch.save "
        "writes. Choose the version's file that is.",
        "file",
    )


def _opened(path: Path, how: Any) -> Any:
    try:
        return how(str(path))
    except Exception as error:
        raise Refusal(f"{path.name} cannot be loaded: {told(error)}", "file") from error


def _of_pickle(path: Path, wanted: Wanted) -> Loaded:
    saved = _unpickled(path)
    if isinstance(saved, torch.nn.Module):
        return Loaded("module", saved.eval())
    weights = saved.get("state_dict", saved) if isinstance(saved, dict) else None
    if not weights or not all(isinstance(value, torch.Tensor) for value in weights.values()):
        raise Refusal(
            f"{path.name} holds a {type(saved).__name__}, neither a module nor a state dict of tensors.",
            "file",
        )
    if not wanted.factory:
        raise Refusal(
            f"{path.name} holds only weights (a state dict of {len(weights)} tensors); name the function of "
            "the run's source "
            "that makes the module, as module:function.",
            "factory",
        )
    module = make(wanted.factory)
    if not isinstance(module, torch.nn.Module):
        raise Refusal(f"{wanted.factory} gives a {type(module).__name__}, not a torch.nn.Module.", "factory")
    _fill(module, weights, path.name, wanted.factory)
    return Loaded("state_dict", module.eval())


def _unpickled(path: Path) -> Any:
    """First without running any code; what cannot be read so is loaded as torch.load did before it was
    careful."""
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        say(f"{path.name} holds more than tensors: loading it runs code of its own, as this run.")
    except Exception as error:
        raise Refusal(f"{path.name} cannot be loaded: {told(error)}", "file") from error
    try:
        return torch.load(path, map_location="cpu", weights_only=False)
    except ModuleNotFoundError as error:
        raise Refusal(missing(error), "file") from error
    except AttributeError as error:
        raise Refusal(_without_class(path, error), "file") from error
    except Exception as error:
        raise Refusal(f"{path.name} cannot be loaded: {told(error)}", "file") from error


def _without_class(path: Path, error: AttributeError) -> str:
    found = re.search(r"attribute '(\w+)' on <module '([\w.]+)'", str(error))
    name, module = found.groups() if found else (str(error), "")
    if module == "__main__":
        return (
            f"{path.name} needs the class {name!r}, which was defined in the script that saved it, and a "
            "pickle only remembers a "
            f"class by its module; move {name!r} to a module of its own and train again, or {OTHER_WAYS}."
        )
    return (
        f"{path.name} needs {name!r} of the module {module!r}, which has no such thing any more; "
        f"{OTHER_WAYS}."
    )


def _fill(module: Any, weights: dict[str, Any], name: str, factory: str) -> None:
    wanted = set(module.state_dict())
    for prefix in PREFIXES:
        stripped = {
            key.removeprefix(prefix): value for key, value in weights.items() if key.startswith(prefix)
        }
        if stripped.keys() == wanted:
            weights = stripped
            break
    try:
        lacking = module.load_state_dict(weights, strict=False)
    except RuntimeError as error:
        wrong = next(
            (line.strip() for line in str(error).splitlines() if "size mismatch" in line), told(error)
        )
        raise Refusal(
            f"The weights of {name} do not fit the module of {factory}: {wrong.rstrip('.')}.", "factory"
        ) from error
    if lacking.missing_keys or lacking.unexpected_keys:
        raise Refusal(
            f"The weights of {name} do not fit the module of {factory}: {_differing(lacking)}.", "factory"
        )


def _differing(lacking: Any) -> str:
    parts = []
    for word, keys in (
        ("it also wants", lacking.missing_keys),
        ("it does not know", lacking.unexpected_keys),
    ):
        if keys:
            parts.append(f"{word} {', '.join(keys[:3])}{f' and {len(keys) - 3} more' if keys[3:] else ''}")
    return " and ".join(parts)
