"""Scans graphs of operators: ONNX models and TensorFlow's SavedModel."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath, PureWindowsPath
from typing import IO

from registry.scanning.formats.protobuf import Field, fields, text
from registry.scanning.formats.source import Source, Unreadable, length_of
from registry.scanning.verdict_names import CLEAN, CONTAINS_CODE, DANGEROUS, NOT_SCANNED, Verdict, combine

# Domains whose operators every runtime brings along itself.
_STANDARD = frozenset(
    {
        "",
        "ai.onnx",
        "ai.onnx.ml",
        "ai.onnx.training",
        "ai.onnx.preview",
        "ai.onnx.preview.training",
        "com.microsoft",
        "com.microsoft.nchwc",
        "com.ms.internal.nhwc",
        "com.microsoft.experimental",
    }
)
MAX_GRAPH_DEPTH = 32
CUSTOM = "It uses operators of its own, for which a library must be loaded."
LEADS_OUT = "Loading it reads a file outside of its own folder."
# PrintV2 and DebugIdentity* belong here because their output may go to a file:// address.
_REACHES_FILES = frozenset(
    {
        "ReadFile",
        "WriteFile",
        "MatchingFiles",
        "LoadLibrary",
        "PrintV2",
        "Save",
        "SaveSlices",
        "DebugIdentity",
        "DebugIdentityV2",
        "DebugIdentityV3",
        "DeleteFile",
        "RpcCall",
        "RpcClient",
        "RpcServer",
        "RegisterDataset",
        "RegisterDatasetV2",
        "DataServiceDataset",
        "DataServiceDatasetV2",
    }
)
_CALLS_PYTHON = frozenset({"PyFunc", "PyFuncStateless", "EagerPyFunc"})
# Fields of the messages, by their numbers in onnx.proto and in TensorFlow's *.proto.
_MODEL_GRAPH, _MODEL_FUNCTIONS, _MODEL_IR = 7, 25, 1
_GRAPH_NODE, _GRAPH_INITIALIZER, _GRAPH_SPARSE = 1, 5, 15
_NODE_OP, _NODE_ATTRIBUTE, _NODE_DOMAIN = 4, 5, 7
_ATTRIBUTE_TENSORS, _ATTRIBUTE_GRAPHS = (5, 10), (6, 11)
_FUNCTION_NAME, _FUNCTION_NODE, _FUNCTION_DOMAIN = 1, 7, 10
_TENSOR_EXTERNAL = 13


def scan_onnx(source: Source) -> Verdict:
    """Judges an ONNX model. It is clean if all its operators are standard or defined in the file, and its
    weights lie below its folder."""
    with source.open() as file:
        reader = _Onnx(file)
        reader.model(length_of(source))
    custom = sorted(reader.used - reader.defined - {item for item in reader.used if item[0] in _STANDARD})
    parts = [("", Verdict(DANGEROUS, (path,), LEADS_OUT)) for path in reader.files if _is_outside(path)]
    if custom:
        parts.append(
            ("", Verdict(CONTAINS_CODE, tuple(f"{domain}.{name}" for domain, name in custom), CUSTOM))
        )
    return combine(parts) if parts else Verdict(CLEAN)


class _Onnx:
    """Reads an ONNX model. `used` and `defined`: operators as (domain, name). `files`: paths of weights
    outside of the file."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.used: set[tuple[str, str]] = set()
        self.defined: set[tuple[str, str]] = set()
        self.files: set[str] = set()

    def model(self, size: int) -> None:
        visited = set()
        for field in fields(self.file, 0, size):
            visited.add(field.number)
            if field.number == _MODEL_GRAPH:
                self._graph(field, 0)
            elif field.number == _MODEL_FUNCTIONS:
                self._function(field)
        # Many bytes read as some protocol buffer; every ONNX model has a graph and the version of its format.
        if not {_MODEL_GRAPH, _MODEL_IR} <= visited:
            raise Unreadable("It is not an ONNX model.")

    def _graph(self, graph: Field, depth: int) -> None:
        if depth > MAX_GRAPH_DEPTH:
            raise Unreadable("Its graphs are nested too deep.")
        for field in self._in(graph):
            if field.number == _GRAPH_NODE:
                self._node(field, depth)
            elif field.number == _GRAPH_INITIALIZER:
                self._tensor(field)
            elif field.number == _GRAPH_SPARSE:
                for part in self._in(field):
                    self._tensor(part)

    def _node(self, node: Field, depth: int) -> None:
        name = domain = ""
        for field in self._in(node):
            if field.number == _NODE_OP:
                name = text(self.file, field)
            elif field.number == _NODE_DOMAIN:
                domain = text(self.file, field)
            elif field.number == _NODE_ATTRIBUTE:
                for part in self._in(field):
                    if part.number in _ATTRIBUTE_TENSORS:
                        self._tensor(part)
                    elif part.number in _ATTRIBUTE_GRAPHS:
                        self._graph(part, depth + 1)
        self.used.add((domain, name))

    def _function(self, function: Field) -> None:
        name = domain = ""
        for field in self._in(function):
            if field.number == _FUNCTION_NAME:
                name = text(self.file, field)
            elif field.number == _FUNCTION_DOMAIN:
                domain = text(self.file, field)
            elif field.number == _FUNCTION_NODE:
                self._node(field, 1)
        self.defined.add((domain, name))

    def _tensor(self, tensor: Field) -> None:
        for field in self._in(tensor):
            if field.number == _TENSOR_EXTERNAL:
                # Each entry of external_data has its key in field 1 and its value in field 2.
                entry = {part.number: text(self.file, part) for part in self._in(field)}
                if entry.get(1) == "location":
                    self.files.add(entry.get(2, ""))

    def _in(self, message: Field) -> Iterator[Field]:
        return fields(self.file, message.start, message.end)


def scan_saved_model(source: Source) -> Verdict:
    """Judges a SavedModel by its operators that access files or call Python. Without these it is
    `not_scanned`, as it still is a program."""
    with source.open() as file:
        names = set(_tensorflow_operators(file, length_of(source)))
    reaching, calling = sorted(names & _REACHES_FILES), sorted(names & _CALLS_PYTHON)
    parts = []
    if reaching:
        parts.append(
            (
                "",
                Verdict(
                    DANGEROUS, tuple(reaching), "Running it reads or writes files, or reaches other machines."
                ),
            )
        )
    if calling:
        parts.append(("", Verdict(CONTAINS_CODE, tuple(calling), "It calls functions of Python.")))
    if not parts:
        sentence = (
            f"A TensorFlow graph is a program; none of its {len(names)} operators is known to be dangerous."
        )
        parts.append(("", Verdict(NOT_SCANNED, note=sentence)))
    return combine(parts)


def _tensorflow_operators(file: IO[bytes], size: int) -> Iterator[str]:
    """Yields the operators in SavedModel.meta_graphs[].graph_def: node[].op and
    library.function[].node_def[].op."""
    count = 0
    for meta in _numbered(file, Field(0, 0, size), 2):
        for graph in _numbered(file, meta, 2):
            nodes = list(_numbered(file, graph, 1))
            for library in _numbered(file, graph, 2):
                for function in _numbered(file, library, 1):
                    nodes += _numbered(file, function, 3)
            count += 1
            for node in nodes:
                for name in _numbered(file, node, 2):
                    yield text(file, name)
    if not count:
        raise Unreadable("It is not a SavedModel.")


def _numbered(file: IO[bytes], message: Field, number: int) -> Iterator[Field]:
    return (
        field
        for field in fields(file, message.start, message.end)
        if field.number == number and not field.is_number
    )


def _is_outside(path: str) -> bool:
    windows = PureWindowsPath(path)
    return PurePosixPath(path).is_absolute() or bool(windows.drive or windows.root) or ".." in windows.parts
