"""Lists what a script imports for certain, without running it:
`python -I -S source_scan.py ZIP_OR_FOLDER ENTRY FOLDER_OF_ENTRY`.

A program of its own that imports the standard library only: sources are untrusted, and a hostile one can
exhaust the memory of the process that parses it, or end it. It starts at ENTRY, follows imports of files of
the source, and prints a JSON object. Imports that may never run, or whose failure is handled, are left out:
those in functions, below `if`, and in `try` with an `except`."""

from __future__ import annotations

import ast
import json
import re
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

MAX_FILES = 200
MAX_FILE_BYTES = 512 * 1024
MAX_TOTAL_BYTES = 4 * 2**20
MAX_S = 3.0
MAX_MODULES = 500
MAX_NAME_LENGTH = 100
# Names with which programs log metrics; one of them anywhere in the source means that something may log.
LOGGERS = re.compile(
    r"mlflow|tensorboard|SummaryWriter|wandb|comet|neptune|clearml|swanlab|trackio|dvclive|\baim\b|"
    r"MetricsLogger|log_metric|TRAINHUB_",
    re.IGNORECASE,
)
_TEXT_ENDINGS = (".py", ".yaml", ".yml", ".json", ".toml", ".cfg", ".ini", ".sh")
_CODE_ENDINGS = (".py", ".pyc", ".pyd", ".so", ".pyx")
# Calls that make modules come from elsewhere, if their argument lies outside of the source.
_PATH_CALLS = ("sys.path.append", "sys.path.insert", "sys.path.extend", "site.addsitedir")
# Text with which a program may change where modules come from in another way.
_OPAQUE = re.compile(
    rb"sys\.(?:path_hooks|meta_path|modules\s*\[)|sys\.path\s*(?:\[[^\]]*\]\s*)?\+?=(?!=)|PYTHONPATH|"
    rb"import pip\b|from pip\b|zipimport"
)
_INSTALLS = re.compile(r"\b(?:pip3?|conda|mamba|uv)\b[\s\S]{0,40}\binstall\b")
# Exceptions of a parser that reads what is not Python, or not of this version.
_UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)


class Source:
    """The files of a source: a zip, or a folder."""

    def __init__(self, path: Path) -> None:
        self._folder = path if path.is_dir() else None
        self._zip = None if self._folder else zipfile.ZipFile(path)
        self._left = MAX_TOTAL_BYTES
        if self._zip is not None:
            self.paths = {info.filename for info in self._zip.infolist() if not info.is_dir()}
        else:
            files = (item for item in path.rglob("*") if item.is_file() and "__pycache__" not in item.parts)
            self.paths = {item.relative_to(path).as_posix() for item in files}

    def read(self, path: str) -> bytes | None:
        """Returns the content of a file, or None if it is too large, or all files read so far are."""
        if self._folder is not None:
            with (self._folder / path).open("rb") as file:
                data = file.read(MAX_FILE_BYTES + 1)
        else:
            assert self._zip is not None  # noqa: S101  # one of both is there
            with self._zip.open(path) as packed:
                data = packed.read(MAX_FILE_BYTES + 1)
        self._left -= len(data)
        return data if len(data) <= MAX_FILE_BYTES and self._left >= 0 else None


class Scan:
    """`imports`: dotted name -> the file and line that import it for certain. `is_complete`: every file was
    read. `is_opaque`: modules may come from elsewhere, so none is certain to be missing."""

    def __init__(self, source: Source, folder: str) -> None:
        self.imports: dict[str, tuple[str, int]] = {}
        self.is_complete = True
        self.is_opaque = False
        self._source = source
        self._roots = [folder] if folder == "" else [folder, ""]
        self._folder = folder
        self._deadline = time.monotonic() + MAX_S
        self._seen: set[str] = set()
        self._local = _local_names(source.paths)

    def follow(self, path: str, *, is_entry: bool = False) -> None:
        pending = [path]
        while pending:
            current = pending.pop()
            if current in self._seen or current not in self._source.paths:
                continue
            self._seen.add(current)
            if len(self._seen) > MAX_FILES or time.monotonic() > self._deadline:
                self.is_complete = False
                return
            pending += self._read(current, is_entry=is_entry and current == path)

    def _read(self, path: str, *, is_entry: bool) -> list[str]:
        """Takes up the imports of the file, and returns the files of the source that it imports."""
        data = self._source.read(path)
        try:
            nodes = None if data is None else self._imports(data, is_entry=is_entry)
        except _UNREADABLE:
            nodes = None
        if nodes is None:
            self.is_complete = False
            return []
        local: list[str] = []
        for node in nodes:
            for name in _names(node, path):
                if _is_relative(node) or name.split(".")[0] in self._local:
                    local += self._files_of(name)
                elif len(self.imports) < MAX_MODULES and len(name) <= MAX_NAME_LENGTH:
                    self.imports.setdefault(name, (path, node.lineno))
        return local

    def _imports(self, data: bytes, *, is_entry: bool) -> list[ast.Import | ast.ImportFrom]:
        tree = ast.parse(data)
        own_folders = _own_folders(tree)
        self.is_opaque |= bool(_OPAQUE.search(data)) or any(
            _changes_modules(node, own_folders) for node in ast.walk(tree) if isinstance(node, ast.Call)
        )
        return list(_certain(tree.body, is_entry=is_entry))

    def _files_of(self, name: str) -> list[str]:
        """Returns the files that importing a module of the source runs: those of its packages, and its
        own."""
        parts = name.split(".")
        for root in self._roots:
            files = []
            for depth in range(1, len(parts) + 1):
                base = "/".join(filter(None, (root, *parts[:depth])))
                files += [
                    item for item in (f"{base}/__init__.py", f"{base}.py") if item in self._source.paths
                ]
            if files:
                return files
        return []


def _local_names(paths: set[str]) -> set[str]:
    """Returns the names of all files and folders: a module that has one of them may be the source's own."""
    names: set[str] = set()
    for text in paths:
        path = PurePosixPath(text)
        names.update(path.parts[:-1])
        if path.suffix in _CODE_ENDINGS:
            names.add(path.name.split(".")[0])
    return names


def _certain(body: list[ast.stmt], *, is_entry: bool) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yields the imports that run whenever the module does."""
    for statement in body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            yield statement
        elif isinstance(statement, ast.ClassDef | ast.With):
            if isinstance(statement, ast.With) and _suppresses(statement):
                continue
            yield from _certain(statement.body, is_entry=is_entry)
        elif isinstance(statement, ast.Try):
            if not statement.handlers:
                yield from _certain(statement.body, is_entry=is_entry)
            yield from _certain(statement.finalbody, is_entry=is_entry)
        elif isinstance(statement, ast.If) and is_entry and _is_main(statement.test):
            yield from _certain(statement.body, is_entry=is_entry)
        if _ends(statement):
            return


def _suppresses(statement: ast.With) -> bool:
    """Returns whether the block may swallow an exception; only those that certainly do not are followed."""
    calls = (ast.unparse(item.context_expr) for item in statement.items)
    return any(not call.startswith(("open(", "torch.", "tf.", "warnings.")) for call in calls)


def _is_main(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and ast.unparse(test) == "__name__ == '__main__'"


def _ends(statement: ast.stmt) -> bool:
    """Returns whether nothing behind the statement runs."""
    if isinstance(statement, ast.Raise):
        return True
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and _dotted(call.func) in ("sys.exit", "exit", "quit", "os._exit")


def _is_relative(node: ast.Import | ast.ImportFrom) -> bool:
    return isinstance(node, ast.ImportFrom) and node.level > 0


def _names(node: ast.Import | ast.ImportFrom, path: str) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    # A relative one is written from the root of the source, as far as the levels lead.
    package = PurePosixPath(path).parts[: -node.level] if node.level else ()
    base = (*package, *filter(None, [node.module]))
    return [".".join(words) for words in (base, *((*base, alias.name) for alias in node.names)) if words]


def _changes_modules(call: ast.Call, own_folders: set[str]) -> bool:
    """Returns whether a call may install packages, or add a folder outside of the source to sys.path.
    `own_folders`: names that stand for folders of the source."""
    name = _dotted(call.func)
    if name in _PATH_CALLS:
        return not all(_is_inside(argument, own_folders) for argument in call.args)
    # Also a list of words, such as subprocess.run([sys.executable, "-m", "pip", "install", …]).
    return name.startswith(("os.", "subprocess.")) and bool(_INSTALLS.search(ast.unparse(call)))


def _own_folders(tree: ast.Module) -> set[str]:
    """Returns the names to which the module assigns something that is made of its own path."""
    names = {"__file__"}
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and _is_inside(statement.value, names):
            names.update(target.id for target in statement.targets if isinstance(target, ast.Name))
    return names


def _is_inside(value: ast.expr, own_folders: set[str]) -> bool:
    """Returns whether the value is made of the source's own paths, or is a relative one; beside the source
    there are no modules."""
    nodes = list(ast.walk(value))
    words = {node.id for node in nodes if isinstance(node, ast.Name)}
    words |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    if words & {"environ", "getenv", "home", "expanduser"} or any(text[:1] in ("/", "~") for text in texts):
        return False
    is_plain = not words and not any(isinstance(node, ast.Call) for node in nodes)
    return is_plain or bool(words & (own_folders | {"getcwd", "cwd"}))


def _dotted(node: ast.expr) -> str:
    """Returns `a.b.c` for such an expression, "" for every other one."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join((node.id, *reversed(parts))) if isinstance(node, ast.Name) else ""


def _mentions_logger(source: Source) -> bool | None:
    """Returns whether a file of the source names a logger; None if not all could be read."""
    for path in sorted(source.paths):
        if path.endswith(_TEXT_ENDINGS):
            data = source.read(path)
            if data is None:
                return None
            if LOGGERS.search(data.decode(errors="replace")):
                return True
    return False


def scan(path: Path, entry: str, folder: str) -> dict[str, Any]:
    source = Source(path)
    result = Scan(source, folder)
    result.follow(entry, is_entry=True)
    return {
        "imports": [[name, file, line] for name, (file, line) in result.imports.items()],
        "is_complete": result.is_complete and entry in source.paths,
        "is_opaque": result.is_opaque,
        "mentions_logger": _mentions_logger(source),
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(scan(Path(sys.argv[1]), sys.argv[2], sys.argv[3])))
