"""The model's own Python code: where it is found, and what is said when it is not."""

from __future__ import annotations

import importlib
import linecache
import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from .reporting import Refusal

SOURCE = Path("source").absolute()
OTHER_WAYS = (
    "register a torch.export program (torch.export.save) or a TorchScript file of the model "
    "instead, which need no code"
)


_roots: list[Path] = []


def find_code(folders: list[Path]) -> None:
    """Let modules of these folders be imported, the first of them before all others."""
    for folder in reversed([folder for folder in folders if folder.is_dir()]):
        sys.path.insert(0, str(folder))
        _roots.append(folder)


def make(factory: str) -> Any:
    """What `module:function` gives when it is called without arguments. Raises Refusal."""
    module_name, _, name = factory.partition(":")
    # A script that reads its arguments while it is imported must not find ours.
    sys.argv = [module_name]
    try:
        function = getattr(importlib.import_module(module_name), name)
    except AttributeError as error:
        raise Refusal(
            f"There is no {name!r} in the module {module_name!r} of the run's source.", "factory"
        ) from error
    except ModuleNotFoundError as error:
        raise Refusal(missing(error), "factory") from error
    except SystemExit as error:
        raise Refusal(
            f"Importing {module_name!r} ends the program; move the function {name!r} to a module that only "
            "defines the model.",
            "factory",
        ) from error
    except Exception as error:
        raise Refusal(f"Importing {module_name!r} fails: {told(error)}", "factory") from error
    return _called(function, factory)


def missing(error: ModuleNotFoundError) -> str:
    """One sentence about a module that could not be imported."""
    name = (error.name or "?").partition(".")[0]
    if not SOURCE.is_dir():
        there = "the version has no run whose source would hold it"
    else:
        modules = sorted(path.stem for path in SOURCE.rglob("*.py"))
        there = (
            "the source of the version's run has "
            f"{', '.join(modules[:8]) or 'no Python file'}{', …' if modules[8:] else ''}"
        )
    return (
        f"The module {name!r} is needed to load the model and cannot be imported: it is no package of the "
        "chosen environment, "
        f"and {there}. Choose an environment that has it, or {OTHER_WAYS}."
    )


def told(error: BaseException) -> str:
    """The error in one line: what it is, its first line, and where in the model's code it happened."""
    lines = str(error).strip().splitlines()
    first = lines[-1] if "Traceback of TorchScript" in str(error) else next(iter(lines), "")
    where = place(error.__traceback__)
    return f"{type(error).__name__}: {first.strip()[:300].rstrip('.')}{f' (at {where})' if where else ''}."


def place(traceback: TracebackType | None) -> str:
    """The last line of the model's own code in a traceback: "model.py, line 17: `if x.sum() > 0:`"; "" where
    it has none."""
    found = ""
    while traceback is not None:
        file, line = traceback.tb_frame.f_code.co_filename, traceback.tb_lineno
        root = next((root for root in _roots if Path(file).is_relative_to(root)), None)
        if root is not None:
            found = (
                f"{Path(file).relative_to(root)}, line {line}: "
                f"`{linecache.getline(file, line).strip()[:120]}`"
            )
        traceback = traceback.tb_next
    return found


def _called(function: Callable[[], Any], factory: str) -> Any:
    try:
        return function()
    except Exception as error:
        raise Refusal(f"Calling {factory} without arguments fails: {told(error)}", "factory") from error
