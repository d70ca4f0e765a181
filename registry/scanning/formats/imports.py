"""Judging the names that a file imports: harmless, unknown, or dangerous."""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Iterable
from functools import lru_cache

from picklescan import scanner
from picklescan.scanner import SafetyLevel

from registry.scanning.verdict_names import CLEAN, CONTAINS_CODE, DANGEROUS, ORDER, Verdict

# picklescan logs a warning for each import that it suspects; the verdict contains them already.
logging.getLogger("picklescan").setLevel(logging.CRITICAL)

Name = tuple[str, str]
UNKNOWN = "a name that is only made while it is loaded"
RUNS_ANYTHING = "Loading it can run any program."
RUNS_LIBRARIES = "Loading it runs code of these libraries, which the scanner does not know as harmless."

_DUNDER = re.compile(r"__\w+__")
# Dotted names in these modules reach methods that access files, such as pathlib.Path.write_bytes.
_OPENS_FILES = frozenset({"pathlib", "io", "_io", "_pyio", "codecs"})
_READABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
_TENSORS = frozenset(
    {
        "Size",
        "device",
        "Tensor",
        "float16",
        "float32",
        "float64",
        "bfloat16",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "bool",
        "complex64",
        "complex128",
        "BFloat16Storage",
        "UntypedStorage",
    }
)
_HARMLESS: dict[str, frozenset[str]] = {
    # As torch.load(weights_only=True) allows them: they make values and call nothing that the pickle names.
    "torch": _TENSORS,
    "torch._utils": frozenset({"_rebuild_tensor_v2", "_rebuild_parameter"}),
    "torch.nn.parameter": frozenset({"Parameter"}),
    "torch.storage": frozenset({"UntypedStorage", "TypedStorage"}),
    "torch.serialization": frozenset({"_get_layout"}),
    "builtins": frozenset(
        {"set", "frozenset", "list", "dict", "tuple", "int", "float", "complex", "bytearray", "slice"}
    ),
    # Python 2's name of builtins; pickles up to protocol 2 still use it.
    "__builtin__": frozenset(
        {"set", "frozenset", "list", "dict", "tuple", "int", "float", "complex", "bytearray", "unicode"}
    ),
    "collections": frozenset({"Counter"}),
    # Python 3 pickles bytes as a call of this function in protocols before 3.
    "_codecs": frozenset({"encode"}),
    "numpy._core.multiarray": frozenset({"scalar"}),
    "numpy.core.multiarray": frozenset({"scalar"}),
    "numpy._core.numeric": frozenset({"_frombuffer"}),
    "numpy.core.numeric": frozenset({"_frombuffer"}),
}
_DANGEROUS_MODULES = frozenset(
    {
        "os",
        "posix",
        "nt",
        "sys",
        "subprocess",
        "importlib",
        "marshal",
        "multiprocessing",
        "ctypes",
        "socket",
        "shutil",
        "pty",
        "runpy",
        "code",
        "codeop",
        "pickle",
        "_pickle",
        "dill",
        "urllib",
        "http",
        "smtplib",
        "ftplib",
        "tempfile",
        "zipimport",
        "builtins.__import__",
        "torch.hub",
        "torch.utils.cpp_extension",
        "concurrent",
        "asyncio",
        "webbrowser",
        "pip",
        "site",
        "antigravity",
        "xmlrpc",
        "socketserver",
        "requests",
        "nturl2path",
        "zipfile",
        "tarfile",
        "fileinput",
        "linecache",
    }
)
_DANGEROUS_NAMES: dict[str, frozenset[str]] = {
    "builtins": frozenset(
        {"__import__", "setattr", "delattr", "globals", "locals", "vars", "input", "exit", "quit"}
    ),
    "__builtin__": frozenset(
        {"__import__", "setattr", "delattr", "globals", "locals", "vars", "input", "execfile", "file"}
    ),
    "numpy": frozenset({"load", "fromfile", "save"}),
    "joblib": frozenset({"load"}),
    "joblib.numpy_pickle": frozenset({"load"}),
    "pandas": frozenset({"read_pickle", "eval"}),
    "pandas.io.pickle": frozenset({"read_pickle"}),
    "torch": frozenset({"load"}),
    "torch.ops": frozenset({"load_library"}),
    "torch._ops": frozenset({"load_library"}),
    "functools": frozenset({"partial", "reduce"}),
    "types": frozenset({"FunctionType", "CodeType", "MethodType"}),
    "io": frozenset({"open", "open_code", "FileIO"}),
    "_io": frozenset({"open", "open_code", "FileIO"}),
}


@lru_cache(4096)
def level_of(module: str, name: str) -> str:
    """Returns the verdict on a file that imports `module`.`name`: a word of ORDER."""
    if not (_READABLE.fullmatch(module) and _READABLE.fullmatch(name)):
        is_foreign = all(
            part.isidentifier() for part in f"{module}.{name}".split(".")
        ) and not _DUNDER.search(name)
        return CONTAINS_CODE if is_foreign else DANGEROUS
    if name in _HARMLESS.get(module, ()):
        return CLEAN
    if name in _DANGEROUS_NAMES.get(module, ()) or _is_dangerous_module(module):
        return DANGEROUS
    # A dotted name goes through the modules that a module imports: torch.serialization, os.system.
    if any(part in _DANGEROUS_MODULES for part in name.split(".")[:-1]) or _DUNDER.search(name):
        return DANGEROUS
    if module in _OPENS_FILES and "." in name:
        return DANGEROUS
    # picklescan judges whole pickles, so it gets one of this import only: opcode GLOBAL with its two lines,
    # and STOP.
    result = scanner.scan_pickle_bytes(io.BytesIO(f"c{module}\n{name}\n.".encode()), "name")
    levels = {
        SafetyLevel.Innocuous: CLEAN,
        SafetyLevel.Suspicious: CONTAINS_CODE,
        SafetyLevel.Dangerous: DANGEROUS,
    }
    return levels[result.globals[0].safety]


def judge_imports(names: Iterable[Name]) -> Verdict:
    """Return the verdict on a file that imports these names, the worst first among its findings."""
    ranked = sorted(names, key=lambda item: (-ORDER.index(level_of(*item)), item))
    level = level_of(*ranked[0]) if ranked else CLEAN
    display_names = tuple(display_name(item) for item in ranked if level_of(*item) != CLEAN)
    notes = {DANGEROUS: RUNS_ANYTHING, CONTAINS_CODE: RUNS_LIBRARIES, CLEAN: ""}
    return Verdict(level, tuple(dict.fromkeys(display_names)), notes[level])


def display_name(item: Name) -> str:
    return ".".join(item) if all(item) else UNKNOWN


def _is_dangerous_module(module: str) -> bool:
    parts = module.split(".")
    return any(".".join(parts[: end + 1]) in _DANGEROUS_MODULES for end in range(len(parts)))
