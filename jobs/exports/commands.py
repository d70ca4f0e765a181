"""A spec as one script of bash for each node, to start by hand: `bash node_0.sh ADDRESS_OF_NODE_0`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jobs.exports.export import SpecExport
from jobs.exports.field_notes import change_note, field_notes
from jobs.exports.node_script import MASTER_PORT, lines_of_nodes, needs_addresses
from jobs.exports.note import Note
from jobs.exports.preamble import preamble_lines
from jobs.exports.process_shape import MPI, ProcessShape, process_shape
from jobs.exports.spec_comment import comment_lines
from trainhub_launch.errors import SpecError
from trainhub_launch.spec import RunSpec

MAX_BYTES = 16 * 2**20
_FIELDS_IN_FILE = ("limits.timeout_s", "limits.grace_s")


def render(spec: RunSpec) -> SpecExport:
    shape = process_shape(spec)
    begin = [
        *comment_lines(spec),
        "set -eu",
        'cd "$(dirname "$0")"',
        *_addresses(shape),
        *preamble_lines(spec, processes=shape.per_node),
    ]
    nodes = lines_of_nodes(spec, shape, timeout_prefix(spec))
    # Every file has all of the spec, so many nodes and long arguments make many bytes.
    size = sum(map(len, begin)) * len(nodes) + sum(sum(map(len, node)) for node in nodes)
    if size > MAX_BYTES:
        raise SpecError(
            "arguments",
            f"files for {len(nodes)} nodes would have more than {MAX_BYTES // 2**20} MiB together; shorten "
            "arguments and variables, or choose another format",
        )
    files = {f"node_{node}.sh": _script(shape, node, begin, lines) for node, lines in enumerate(nodes)}
    return SpecExport(files, (*_notes(spec, shape), *field_notes(spec, _FIELDS_IN_FILE)))


def timeout_prefix(spec: RunSpec) -> str:
    """Returns what stands before a command that has to end in time."""
    limits = spec.limits
    return f"timeout --kill-after={limits.grace_s}s {limits.timeout_s}s " if limits.timeout_s else ""


def _script(shape: ProcessShape, node: int, begin: Sequence[str], end: Sequence[str]) -> str:
    lines = [
        "#!/usr/bin/env bash",
        f"# Node {node} of {shape.nodes}. {_usage(shape, node)}",
        *begin,
        f"export NODE_RANK={node}",
        *end,
    ]
    return "\n".join(lines) + "\n"


def _usage(shape: ProcessShape, node: int) -> str:
    others = " and those of all others, in their order" if needs_addresses(shape) else ""
    return (
        f"Start it there, in the folder of the code: bash node_{node}.sh with the address of node 0{others}"
    )


def _addresses(shape: ProcessShape) -> Iterator[str]:
    if shape.nodes == 1:
        yield 'export MASTER_ADDR="${1:-127.0.0.1}"'
    elif needs_addresses(shape):
        count = shape.nodes
        yield f': "${{{count}:?name the addresses of all {count} nodes, that of node 0 first}}"'
        yield 'nodes=("$@")'
        yield 'export MASTER_ADDR="$1"'
    else:
        yield 'export MASTER_ADDR="${1:?name the address of node 0}"'
    yield f'export MASTER_PORT="${{MASTER_PORT:-{MASTER_PORT}}}"'


def _notes(spec: RunSpec, shape: ProcessShape) -> Iterator[Note]:
    if shape.starter == MPI and shape.nodes > 1:
        yield change_note(
            "distribution", "mpirun of node 0 reaches the other nodes through ssh without a password"
        )
    if spec.limits.timeout_s:
        yield change_note("limits.timeout_s", "the program timeout ends the processes of each node by itself")
