"""Finds and calls the model's own Python code, and explains errors in it."""

from __future__ import annotations

import importlib
import linecache
import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from .report import ExportRefusal

SOURCE = Path("source").absolute()
OTHER_WAYS = (
    "register a torch.export program (torch.export.save) or a TorchScript file of the model "
    "instead, which need no code"
)


_roots: list[Path] = []


def find_code(folders: list[Path]) -> None:
    """Makes the modules in these folders importable; the first folder precedes all others."""
    # Each folder is put at the front, so the first one comes last.
    for folder in reversed([folder for folder in folders if folder.is_dir()]):
        sys.path.insert(0, str(folder))
        _roots.append(folder)


def make(factory: str) -> object:
    """Calls `module:function` without arguments and returns the result. Raises ExportRefusal."""
    module_name, _, name = factory.partition(":")
    # A script that reads its arguments while it is imported must not find ours.
    sys.argv = [module_name]
    try:
        function = getattr(importlib.import_module(module_name), name)
    except AttributeError as error:
        raise ExportRefusal(
            f"There is no {name!r} in the module {module_name!r} of the run's source.", "factory"
        ) from error
    except ModuleNotFoundError as error:
        raise ExportRefusal(missing_module(error), "factory") from error
    except SystemExit as error:
        raise ExportRefusal(
            f"Importing {module_name!r} ends the program; move the function {name!r} to a module that only "
            "defines the model.",
            "factory",
        ) from error
    except Exception as error:
        raise ExportRefusal(f"Importing {module_name!r} fails: {error_text(error)}", "factory") from error
    return _call(function, factory)


def missing_module(error: ModuleNotFoundError) -> str:
    """Returns a message about a module that could not be imported."""
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


def error_text(error: BaseException) -> str:
    """Returns the error in one line: its type, its message, and where in the model's code it was raised."""
    lines = str(error).strip().splitlines()
    # Errors of TorchScript end with their message; others begin with it.
    first = lines[-1] if "Traceback of TorchScript" in str(error) else next(iter(lines), "")
    where = code_location(error.__traceback__)
    return f"{type(error).__name__}: {first.strip()[:300].rstrip('.')}{f' (at {where})' if where else ''}."


def code_location(traceback: TracebackType | None) -> str:
    """Returns the innermost line of the model's own code in a traceback, such as "model.py, line 17: `if
    x.sum() > 0:`", or ""."""
    innermost = ""
    while traceback is not None:
        file, line = traceback.tb_frame.f_code.co_filename, traceback.tb_lineno
        root = next((root for root in _roots if Path(file).is_relative_to(root)), None)
        if root is not None:
            innermost = (
                f"{Path(file).relative_to(root)}, line {line}: "
                f"`{linecache.getline(file, line).strip()[:120]}`"
            )
        traceback = traceback.tb_next
    return innermost


def _call(function: Callable[[], object], factory: str) -> object:
    try:
        return function()
    except Exception as error:
        raise ExportRefusal(
            f"Calling {factory} without arguments fails: {error_text(error)}", "factory"
        ) from error
