"""Files of other launchers as specs. Whatever a spec cannot hold is a note with its line; nothing is guessed
silently."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jobs.exports import export_spec
from jobs.exports.note import Note, Outcome
from jobs.exports.spec_comment import NO_SOURCE, find_comment, read_spec_json, spec_json
from jobs.imports import azureml, dstack, sbatch, skypilot
from jobs.imports.draft import ImportDraft
from jobs.imports.hand_edits import HandEdits
from jobs.imports.yaml_document import FIELD, MAX_TEXT_BYTES
from trainhub_launch.errors import SpecError
from trainhub_launch.spec import RunSpec

DETERMINED = "determined"


@dataclass(frozen=True)
class ImportFormat:
    """`parse` reads a file; `add_command` then adds what its shell lines mean."""

    parse: Callable[[str], ImportDraft]
    add_command: Callable[[ImportDraft], None]


@dataclass(frozen=True)
class SpecImport:
    spec: RunSpec
    notes: tuple[Note, ...]

    def to_json(self) -> dict[str, Any]:
        return {"spec": spec_json(self.spec), "notes": [note.to_json() for note in self.notes]}


READERS: dict[str, ImportFormat] = {
    "sbatch": ImportFormat(sbatch.parse, sbatch.add_slurm_command),
    "azureml": ImportFormat(azureml.parse, azureml.add_azureml_command),
    "skypilot": ImportFormat(skypilot.parse, skypilot.add_skypilot_command),
    "dstack": ImportFormat(dstack.parse, dstack.add_dstack_command),
}


def import_spec(source: str, text: str) -> SpecImport:
    """Returns the spec in a file. `source`: its format. Raises SpecError for the fields `from` and `text`,
    and for a field of the spec that the file sets to what no spec may have."""
    if source == DETERMINED:
        raise SpecError(
            "from",
            "files of Determined are read beside their code: use trainhub import FILE --from determined, or "
            "client.specs.from_determined(FILE) of the SDK",
        )
    if source not in READERS:
        raise SpecError("from", f"{source!r:.60} is no format; use {' or '.join(READERS)}")
    if len(text.encode(errors="replace")) > MAX_TEXT_BYTES:
        raise SpecError(FIELD, f"must have at most {MAX_TEXT_BYTES // 1024} KiB; paste one file")
    if "\x00" in text or not text.strip():
        raise SpecError(FIELD, "is empty or no text; paste the whole file")
    text = text.replace("\r\n", "\n")
    own, notes = _own_spec(text)
    if own is not None:
        return _import_own(source, text, own)
    reader = READERS[source]
    draft = reader.parse(text)
    reader.add_command(draft)
    spec = read_spec_json(draft.spec_json())
    return SpecImport(spec, _sorted([*notes, *draft.notes, *_source_notes(spec)]))


def _own_spec(text: str) -> tuple[RunSpec | None, list[Note]]:
    """Returns the spec in the comment of a file that TrainHub has written, None with notes if there is none
    that can be read."""
    comment = find_comment(text)
    if comment is None:
        return None, []
    line, data = comment
    try:
        return read_spec_json(json.loads(data)), []
    except (ValueError, RecursionError, SpecError) as error:
        message = f"the spec in the comment cannot be read, so only the rest of the file counts: {error}"
        return None, [Note("trainhub-spec", Outcome.NONE, message[:400], line)]


def _import_own(source: str, text: str, spec: RunSpec) -> SpecImport:
    reader = READERS[source]
    (ours,) = export_spec(spec, source).files.values()
    if ours.strip() == text.strip():
        message = "the file is as TrainHub has written it: the whole spec is taken"
        return SpecImport(
            spec, (Note("trainhub-spec", Outcome.SAME, message, (find_comment(text) or (1, ""))[0]),)
        )
    edits = HandEdits(spec, reader.parse(ours), reader.parse(text))
    edits.apply()
    changed = read_spec_json(edits.json)
    line = (find_comment(text) or (1, ""))[0]
    message = "fills in what the file does not say; what was changed by hand counts"
    return SpecImport(changed, _sorted([Note("trainhub-spec", Outcome.SAME, message, line), *edits.notes]))


def _source_notes(spec: RunSpec) -> list[Note]:
    if spec.source != NO_SOURCE:
        return []
    message = (
        "a file has no code: send a folder with the spec, or name a snapshot, a git repository or an example"
    )
    return [Note("source", Outcome.NONE, message)]


def _sorted(notes: list[Note]) -> tuple[Note, ...]:
    return tuple(sorted(notes, key=lambda note: note.line or 2**31))
