"""The corpus: which public files are submit scripts, and their text as Python. The files themselves are not
part of this project: they are read from clones of the repositories in `corpus.json`."""

from __future__ import annotations

import ast
import json
import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

LIST = Path(__file__).with_name("corpus.json")
# What a script submits by itself: a script with its configuration, an estimator, or a search.
CONFIGURATIONS = frozenset(
    (
        "ScriptRunConfig",
        "Estimator",
        "PyTorch",
        "TensorFlow",
        "Chainer",
        "SKLearn",
        "HyperDriveConfig",
        "HyperDriveRunConfig",
    )
)
# A file that imports one of these submits something else, which the compatibility layer refuses.
OTHER_PRODUCTS = ("azureml.train.automl", "azureml.automl", "azureml.pipeline", "azureml.contrib")
OTHER_NAMES = ("SynapseCompute", "LinkedService")
SCRIPT, OTHER = "script", "other"
_MAGIC = re.compile(r"\s*[%!?]|.*\?\s*\Z")
_WRITEFILE = re.compile(r"%%writefile\s+(?P<append>-a\s+)?(?P<path>.+)")
_VARIABLE = re.compile(r"\$(\w+)|\{([^{}]+)\}")
_PYTHON_CELLS = ("%%time", "%%capture")


class CorpusFile(NamedTuple):
    """`repository`: OWNER/NAME; `commit`: 40 digits; `kind`: SCRIPT, or OTHER for what submits no script."""

    repository: str
    commit: str
    path: str
    kind: str

    @property
    def key(self) -> str:
        return f"{self.repository}@{self.commit[:8]}:{self.path}"


class Repository(NamedTuple):
    """`commits`: the first that has a file counts for it, so that each path is in the corpus once."""

    name: str
    licence: str
    commits: Sequence[str]


def load_repositories() -> list[Repository]:
    return [Repository(**row) for row in json.loads(LIST.read_text())["repositories"]]


def load_files() -> list[CorpusFile]:
    return [CorpusFile(*row) for row in json.loads(LIST.read_text())["files"]]


def clone_of(clones: Path, repository: str) -> Path:
    """Returns the folder of a clone: OWNER+NAME in the folder of all."""
    return clones / repository.replace("/", "+")


def git(clone: Path, *arguments: str) -> bytes:
    return subprocess.run(["git", "-C", clone, *arguments], check=True, capture_output=True).stdout


def select(clones: Path, repository: Repository) -> Iterator[CorpusFile]:
    """Yields the files of a repository that belong to the corpus, by the rule in docs/benchmarks.md."""
    clone = clone_of(clones, repository.name)
    paths: set[str] = set()
    for commit in repository.commits:
        pattern = ("grep", "-l", "-z", "-e", "submit", commit, "--", "*.py", "*.ipynb")
        for name in git(clone, *pattern).decode().split("\0"):
            path = name.partition(":")[2]
            if not path or path in paths:
                continue
            raw = git(clone, "show", name)
            kind = kind_of(to_python(path, raw)) if b"azureml" in raw else ""
            if kind:
                paths.add(path)
                yield CorpusFile(repository.name, commit, path, kind)


def kind_of(source: str) -> str:
    """Returns SCRIPT or OTHER, "" for a text that submits nothing, or only defines functions that do."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return ""
    names = {name for node in ast.walk(tree) for name in _imported(node)}
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    submits = any(isinstance(call, ast.Attribute) and call.attr == "submit" for call in calls)
    if not names or not submits or all(map(_only_defines, tree.body)):
        return ""
    is_other = any(name.startswith(OTHER_PRODUCTS) or name.endswith(OTHER_NAMES) for name in names)
    made = {call.attr if isinstance(call, ast.Attribute) else getattr(call, "id", "") for call in calls}
    return SCRIPT if made & CONFIGURATIONS and not is_other else OTHER


def _imported(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and not node.level:
        names = [f"{node.module}.{alias.name}" for alias in node.names]
    else:
        return
    yield from (name for name in names if name.split(".")[0] == "azureml")


def _only_defines(statement: ast.stmt) -> bool:
    if isinstance(statement, (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)):
        return True
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    is_assignment = isinstance(statement, (ast.Assign, ast.AnnAssign))
    return is_assignment and not any(isinstance(node, ast.Call) for node in ast.walk(statement))


def to_python(path: str, raw: bytes) -> str:
    """Returns a script as it is. Of a notebook the cells that are Python, with lines of magic as `pass`, and
    each `%%writefile` as a statement that writes the file."""
    text = raw.decode("utf-8-sig", "replace")
    if not path.endswith(".ipynb"):
        return text
    try:
        cells = json.loads(text).get("cells") or []
    except ValueError:
        return ""
    sources = ["".join(cell.get("source") or "") for cell in cells if cell.get("cell_type") == "code"]
    return "\n".join(filter(None, map(_cell, sources))) + "\n"


def _cell(source: str) -> str:
    first, _, rest = source.lstrip().partition("\n")
    writefile = _WRITEFILE.match(first)
    if writefile:
        mode = "a" if writefile["append"] else "w"
        return f"with open({_expanded(writefile['path'].strip())}, {mode!r}) as _file: _file.write({rest!r})"
    if first.startswith("%%") and not first.startswith(_PYTHON_CELLS):
        return ""
    code = "\n".join("pass" if _MAGIC.match(line) else line for line in source.splitlines())
    try:
        ast.parse(code)
    except SyntaxError:
        return ""
    return code


def _expanded(path: str) -> str:
    """Returns the expression for a path with the variables of a notebook: `$NAME` and `{EXPRESSION}`."""
    path = path.strip("\"'")
    parts: list[str] = []
    end = 0
    for match in _VARIABLE.finditer(path):
        parts += [repr(path[end : match.start()]), f"str({match[1] or match[2]})"]
        end = match.end()
    return "+".join([*parts, repr(path[end:])])
