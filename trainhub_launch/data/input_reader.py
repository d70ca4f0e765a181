"""Reads the inputs of a RunSpec from JSON. Every error names its field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from trainhub_launch.errors import SpecError
from trainhub_launch.fields import Fields
from trainhub_launch.processes.inputs import FILES_SUFFIX
from trainhub_launch.spec import FAIL, IF_CHANGED, INPUT_MODES, INPUT_NAME, REFERENCE, DataInput

MOST_INPUTS, LONGEST_INPUT_PATH = 50, 1024
ONE_SOURCE = 'is required, or dataset instead of it, as in {"dataset": "birds"}; not both'


def read_inputs(fields: Fields) -> dict[str, DataInput]:
    """Returns the field `inputs`. Raises SpecError."""
    raw = fields.raw("inputs", {})
    if not isinstance(raw, Mapping):
        raise SpecError(
            "inputs", 'must be a JSON object of name: {"datastore": …, "path": …} or {"dataset": …}'
        )
    if len(raw) > MOST_INPUTS:
        raise SpecError("inputs", f"has {len(raw)} entries; a run has at most {MOST_INPUTS}")
    out: dict[str, DataInput] = {}
    names: dict[str, str] = {}
    for name, value in raw.items():
        if not isinstance(name, str) or not INPUT_NAME.match(name):
            raise SpecError(
                "inputs",
                f"{str(name)!r:.80} is no name of an input: use letters, digits and '_', starting with a "
                "letter",
            )
        out[name] = _read_input(Fields(value, f"inputs.{name}"))
        for variable in _variables(name, out[name]):
            other = names.setdefault(variable, name)
            if other != name:
                raise SpecError(
                    f"inputs.{name}", f"and {other!r} both become TRAINHUB_INPUT_{variable}; rename one"
                )
    return out


def _variables(name: str, data_input: DataInput) -> Iterator[str]:
    yield name.upper()
    if data_input.mode == REFERENCE:
        yield f"{name.upper()}{FILES_SUFFIX}"


def _read_input(part: Fields) -> DataInput:
    path = part.text("path", longest=LONGEST_INPUT_PATH).rstrip("/")
    if path and any(piece in ("", ".", "..") or not piece.isprintable() for piece in path.split("/")):
        raise SpecError(
            part.path("path"),
            f"{path!r} is no path below the datastore; write it without '..' and without a slash at its "
            "beginning, such as 'birds/2024'",
        )
    out = DataInput(
        part.text("datastore").strip(),
        path,
        _read_choice(part, "mode", "", INPUT_MODES),
        part.text("dataset").strip(),
        part.optional_integer("version", least=1, most=2**31 - 1),
        _read_choice(part, "if_changed", FAIL, IF_CHANGED),
    )
    part.finish()
    if bool(out.datastore) == bool(out.dataset):
        raise SpecError(part.path("datastore"), ONE_SOURCE)
    if out.dataset and out.path:
        raise SpecError(part.path("path"), "stands beside a dataset, which is read as a whole; leave it out")
    if out.version is not None and not out.dataset:
        raise SpecError(part.path("version"), "stands without dataset, whose version is meant")
    if out.uses_changed:
        _check_changed(part, out)
    return out


def _check_changed(part: Fields, data_input: DataInput) -> None:
    if not data_input.dataset:
        raise SpecError(
            part.path("if_changed"),
            "only a dataset can have changed files; of a datastore a run reads what is there anyway: leave "
            "if_changed out",
        )
    if data_input.mode == REFERENCE:
        raise SpecError(
            part.path("if_changed"),
            "cannot be chosen with mode 'reference', where the script itself reads the files: leave "
            "if_changed out",
        )


def _read_choice(part: Fields, name: str, default: str, choices: tuple[str, ...]) -> str:
    value = part.text(name, default)
    if value != default and value not in choices:
        raise SpecError(part.path(name), f"{value!r} is no {name}; use {' or '.join(map(repr, choices))}")
    return value
