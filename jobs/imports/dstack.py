"""Reads tasks of dstack."""

from __future__ import annotations

import re

from jobs.exports.dstack import PRIORITY
from jobs.exports.note import Outcome
from jobs.imports.draft import NODES, ImportDraft, ProcessLayout, ShellBody
from jobs.imports.process_start import read_body
from jobs.imports.shell_body import ShellDialect
from jobs.imports.task_fields import (
    note_unread,
    parse_seconds,
    put_cores,
    put_size,
    put_variables,
)
from jobs.imports.yaml_document import FIELD, YamlDocument
from trainhub_launch.errors import SpecError

_SECRET = re.compile(r"\$\{\{\s*secrets\.([A-Za-z_][A-Za-z0-9_]*)\s*\}\}\Z")
_REMEDIES = {
    "files": "the code comes from the source of the spec",
    "repos": "the code comes from the source of the spec: git, or a folder that you send",
    "working_dir": "processes start in the folder of the code",
    "shell": "a spec starts programs without a shell",
    "image": "make an environment of kind image",
    "python": "choose an environment with this Python",
    "retry": "set limits.retries, after how many failures it starts again",
    "fleets": "choose a cluster of TrainHub",
    "backends": "choose a cluster of TrainHub",
    "stop_criteria": "TrainHub ends a run with its ranks",
    "volumes": "make a datastore or a dataset, and name it in inputs",
    "ports": "TrainHub opens none",
}


def parse(text: str) -> ImportDraft:
    draft, document = ImportDraft(), YamlDocument(text)
    kind = document.text("type")
    if kind != "task":
        raise SpecError(FIELD, f"type: {kind!r:.40} is not imported: only a task of dstack ends by itself")
    if name := document.text("name"):
        draft.put(("display_name",), name, "name", document.line("name"))
    nodes = document.value("nodes")
    if isinstance(nodes, int) and not isinstance(nodes, bool) and nodes > 0:
        draft.layout = ProcessLayout(nodes)
        draft.put(NODES, nodes, "nodes", document.line("nodes"))
    _read_gpus(draft, document)
    put_cores(draft, document, ("resources", "cpu"))
    put_size(draft, document, ("resources", "memory"), "memory")
    put_size(draft, document, ("resources", "disk"), "disk")
    put_variables(draft, document, ("env",), _variable)
    _read_limits(draft, document)
    for tag in document.names("tags"):
        draft.put(("tags", tag), document.text("tags", tag), f"tags.{tag}", document.line("tags", tag))
    _read_commands(draft, document)
    note_unread(draft, document, _REMEDIES)
    return draft


def add_dstack_command(draft: ImportDraft) -> None:
    gpus = draft.fields.get(("resources", "gpus_per_node"), 0)
    dialect = ShellDialect(
        renames={"DSTACK_NODE_RANK": "NODE_RANK", "DSTACK_MASTER_NODE_IP": "MASTER_ADDR"},
        addresses=("DSTACK_NODES_IPS", "DSTACK_MPI_HOSTFILE"),
        values={
            "DSTACK_NODES_NUM": str(draft.layout.nodes),
            "DSTACK_GPUS_PER_NODE": str(gpus),
            "DSTACK_GPUS_NUM": str(gpus * draft.layout.nodes),
        },
    )
    read_body(draft, dialect)


def _variable(text: str) -> str | dict[str, str]:
    secret = _SECRET.match(text)
    return {"secret": secret[1]} if secret else text.replace("$$", "$")


def _read_gpus(draft: ImportDraft, document: YamlDocument) -> None:
    path = ("resources", "gpu")
    if not document.has(*path):
        return
    is_mapping = document.is_mapping(*path)
    text = document.text(*path, "count") if is_mapping else document.text(*path)
    # Such as H100:80GB:8, 24GB:2 or 8: the number stands alone between colons.
    counts = [part for part in text.split(":") if part.isdecimal() and len(part) < 4]
    line = document.line(*path)
    document.mark_read(*path)
    if len(counts) == 1 or (text and not counts and ".." not in text and not is_mapping):
        count = int(counts[0]) if counts else 1
        rest = [part for part in text.split(":") if part not in counts]
        change = f"becomes {count}; a spec names no model, so {', '.join(rest)} is left out" if rest else ""
        draft.put(("resources", "gpus_per_node"), count, ".".join(path), line, change)
    else:
        draft.refuse(".".join(path), "is no single number of GPUs: set resources.gpus_per_node", line)


def _read_limits(draft: ImportDraft, document: YamlDocument) -> None:
    for name, field in (("max_duration", "timeout_s"), ("stop_duration", "grace_s")):
        text = document.text(name)
        if not text:
            continue
        seconds, line = parse_seconds(text), document.line(name)
        most = 3600 if field == "grace_s" else 366 * 86400
        if seconds:
            change = f"becomes {most} s, the longest" if seconds > most else ""
            draft.put(("limits", field), min(seconds, most), name, line, change)
        else:
            draft.refuse(name, f"{text!r:.60} sets no limit in a spec", line)
    priority = document.value("priority")
    if isinstance(priority, int) and not isinstance(priority, bool) and 0 < priority <= 100:
        ours = max(1, priority // PRIORITY)
        line = document.line("priority")
        draft.put(("priority",), ours, "priority", line, f"{priority} of 100 becomes {ours} of 10")


def _read_commands(draft: ImportDraft, document: YamlDocument) -> None:
    names = document.names("commands")
    if document.is_list("commands") and names:
        text = "\n".join(document.text("commands", name) for name in names)
        draft.body = ShellBody(text, document.text_line("commands", names[0]), "commands")
        if len(names) > 1 and any("\n" in document.text("commands", name) for name in names[:-1]):
            message = "further lines of notes on commands count from the first one"
            draft.note("commands", Outcome.CHANGED, message, document.line("commands"))
