"""The measures of `bench.house`: what each counts, and the words and names that the project agreed on."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

# Participles and words of a private dialect. An identifier that contains one of them as a word says too
# little about its value: `report` instead of `told`, `query` instead of `asked`.
_BANNED = """
told untold asked found wanted known held shown kept begun said given taken left gone befallen heard unheard
seen made meant standing sought brought forgo forgone anew whoever whatever nobody dug
"""
BANNED_WORDS = frozenset(_BANNED.split())
BANNED_PHRASE = re.compile(r"(?<![a-z])let_go(?![a-z])")
# Terms of the field that contain a banned word; they are removed before the words are checked.
STANDARD_TERMS = ("not_found", "known_hosts", "well_known", "last_seen", "first_seen", "left_join")
# Names that may stand in several modules: Django prescribes them, or the module's name completes them
# (`plan.build`, `cursor.parse`, `email.render`).
# All but the first two are names of the Azure ML SDK v1, which its scripts import from `trainhub_azureml`.
SHARED_CLASSES = frozenset(
    {"Command", "Migration", "Environment", "Model", "PyTorch", "Run", "TensorFlow", "Workspace"}
)
SHARED_FUNCTIONS = frozenset(
    {
        "build",
        "parse",
        "render",
        "main",
        "run",
        "register",
        "validate",
        "clear",
        "start",
        "stop",
        "load",
        "save",
    }
)
MAX_LINE = 110
MAX_FOLDER = 20
MAX_FUNCTION = 50
MAX_FILE = 300
# Larger limits for scripts that people download alone, so that each has to be one file.
STANDALONE = {"registry/verifying/trainhub_verify.py": 350}
MIN_FILE = 3
PRAGMA = re.compile(r"#\s*(noqa|type:|ruff:|mypy:|pragma:|fmt:|!)")
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


@dataclass(frozen=True, slots=True)
class Source:
    path: str
    text: str
    lines: Sequence[str]
    tree: ast.Module

    @property
    def is_module(self) -> bool:
        return not self.path.endswith("__init__.py")

    @property
    def module_name(self) -> str:
        return Path(self.path).stem

    @property
    def folder(self) -> str:
        return str(Path(self.path).parent)


@dataclass(frozen=True, slots=True)
class Offender:
    path: str
    line: int
    name: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.name}"


@dataclass(frozen=True, slots=True)
class Measurement:
    value: float
    offenders: Sequence[Offender] = ()


def read_sources(root: Path, packages: Sequence[str]) -> list[Source]:
    sources = []
    for package in packages:
        for path in sorted((root / package).rglob("*.py")):
            text = path.read_text()
            lines = text.splitlines()
            if "migrations" not in path.parts and len(lines) >= MIN_FILE:
                sources.append(Source(str(path.relative_to(root)), text, lines, ast.parse(text)))
    return sources


def identifiers(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and name of each variable, attribute, parameter, keyword argument and definition."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.ExceptHandler(name=str(name)):
                yield node.lineno, name
            case ast.arg(arg=name) | ast.keyword(arg=str(name)):
                yield node.lineno, name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name
            case ast.alias(asname=str(name)):
                yield node.lineno, name


def banned_words(identifier: str) -> list[str]:
    """The banned words of an identifier in snake_case or CamelCase, except in standard terms."""
    words = "_".join(word.lower() for word in WORD.findall(identifier))
    for term in STANDARD_TERMS:
        words = re.sub(rf"(?<![a-z]){term}(?![a-z])", "", words)
    banned = [word for word in words.split("_") if word in BANNED_WORDS]
    return [*banned, *BANNED_PHRASE.findall(words)]


def _line_count(sources: Sequence[Source]) -> int:
    return sum(len(source.lines) for source in sources)


def _per_thousand(sources: Sequence[Source], offenders: Sequence[Offender]) -> Measurement:
    return Measurement(1000 * len(offenders) / max(1, _line_count(sources)), offenders)


def participles(sources: Sequence[Source]) -> Measurement:
    offenders = [
        Offender(source.path, line, name)
        for source in sources
        for line, name in identifiers(source.tree)
        if banned_words(name)
    ]
    return _per_thousand(sources, offenders)


def any_types(sources: Sequence[Source]) -> Measurement:
    uses = [
        Offender(source.path, line, name)
        for source in sources
        for line, name in identifiers(source.tree)
        if name == "Any"
    ]
    return _per_thousand(sources, uses)


def _shared_names(definitions: Sequence[Offender], permitted: frozenset[str]) -> Measurement:
    """The share of distinct names that more than one module defines."""
    modules: defaultdict[str, set[str]] = defaultdict(set)
    for definition in definitions:
        modules[definition.name].add(definition.path)
    shared = {name for name, paths in modules.items() if len(paths) > 1} - permitted
    offenders = sorted(
        (one for one in definitions if one.name in shared), key=lambda one: (one.name, one.path)
    )
    return Measurement(100 * len(shared) / max(1, len(modules)), offenders)


def shared_classes(sources: Sequence[Source]) -> Measurement:
    classes = [
        Offender(source.path, node.lineno, node.name)
        for source in sources
        for node in source.tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]
    return _shared_names(classes, SHARED_CLASSES)


def shared_functions(sources: Sequence[Source]) -> Measurement:
    functions = [
        Offender(source.path, node.lineno, node.name)
        for source in sources
        for node in source.tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_")
    ]
    return _shared_names(functions, SHARED_FUNCTIONS)


def gerund_modules(sources: Sequence[Source]) -> Measurement:
    modules = [source for source in sources if source.is_module]
    gerunds = [Offender(one.path, 1, one.module_name) for one in modules if one.module_name.endswith("ing")]
    return Measurement(100 * len(gerunds) / max(1, len(modules)), gerunds)


def widest_folder(sources: Sequence[Source]) -> Measurement:
    widths = Counter(source.folder for source in sources if source.is_module)
    wide = [
        Offender(folder, 1, f"{width} modules")
        for folder, width in widths.most_common()
        if width > MAX_FOLDER
    ]
    return Measurement(max(widths.values(), default=0), wide)


def wide_lines(sources: Sequence[Source]) -> Measurement:
    wide = [
        Offender(source.path, number, f"{len(line)} columns")
        for source in sources
        for number, line in enumerate(source.lines, 1)
        if len(line) > MAX_LINE
    ]
    return Measurement(len(wide), wide)


def comment_share(sources: Sequence[Source]) -> Measurement:
    """Comments per 100 lines, also at the end of a line; orders to tools (`noqa`) do not count."""
    comments = 0
    for source in sources:
        tokens = tokenize.generate_tokens(io.StringIO(source.text).readline)
        comments += sum(token.type == tokenize.COMMENT and not PRAGMA.match(token.string) for token in tokens)
    return Measurement(100 * comments / max(1, _line_count(sources)))


def long_functions(sources: Sequence[Source]) -> Measurement:
    long = []
    for source in sources:
        for node in ast.walk(source.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length > MAX_FUNCTION:
                    long.append(Offender(source.path, node.lineno, f"{node.name}, {length} lines"))
    return Measurement(len(long), long)


def long_files(sources: Sequence[Source]) -> Measurement:
    long = [
        Offender(source.path, 1, f"{len(source.lines)} lines")
        for source in sources
        if len(source.lines) > STANDALONE.get(source.path, MAX_FILE)
    ]
    return Measurement(len(long), long)
