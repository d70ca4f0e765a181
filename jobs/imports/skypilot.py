"""Reads tasks of SkyPilot."""

from __future__ import annotations

import re

from jobs.exports.note import Outcome
from jobs.imports.draft import NODES, ImportDraft, ProcessLayout, ShellBody
from jobs.imports.process_start import read_body
from jobs.imports.shell_body import ShellDialect
from jobs.imports.task_fields import note_unread, put_cores, put_secret, put_size, put_variables
from jobs.imports.yaml_document import YamlDocument

_REMEDIES = {
    "setup": "packages come from an environment: make one that has what it installs",
    "workdir": "the code comes from the source of the spec",
    "file_mounts": "make a datastore or a dataset, and name it in inputs",
    "resources.infra": "choose a cluster of TrainHub",
    "resources.cloud": "choose a cluster of TrainHub",
    "resources.use_spot": "choose a cluster of TrainHub",
    "resources.image_id": "make an environment of kind image",
    "service": "TrainHub trains, and serves nothing",
}


def parse(text: str) -> ImportDraft:
    draft, document = ImportDraft(), YamlDocument(text)
    if name := document.text("name"):
        draft.put(("display_name",), name[:200], "name", document.line("name"))
    nodes = document.value("num_nodes")
    if isinstance(nodes, int) and not isinstance(nodes, bool) and nodes > 0:
        draft.layout = ProcessLayout(nodes)
        draft.put(NODES, nodes, "num_nodes", document.line("num_nodes"))
    if document.text("workdir") == ".":
        line = document.line("workdir")
        draft.note("workdir", Outcome.SAME, "is the folder that you send with the spec", line)
    elif document.has("workdir"):
        draft.refuse("workdir", "send this folder with the spec", document.line("workdir"))
    _read_accelerators(draft, document)
    put_cores(draft, document, ("resources", "cpus"))
    put_size(draft, document, ("resources", "memory"), "memory")
    put_size(draft, document, ("resources", "disk_size"), "disk")
    _read_recovery(draft, document)
    put_variables(draft, document, ("envs",))
    for name in document.names("secrets"):
        document.mark_read("secrets", name)
        variable = document.text("secrets", name) if document.is_list("secrets") else name
        put_secret(draft, variable, f"secrets.{variable}", document.line("secrets", name))
    if document.has("run"):
        draft.body = ShellBody(document.text("run"), document.text_line("run"), "run")
    note_unread(draft, document, _REMEDIES)
    return draft


def add_skypilot_command(draft: ImportDraft) -> None:
    dialect = ShellDialect(
        renames={"SKYPILOT_NODE_RANK": "NODE_RANK"},
        addresses=("SKYPILOT_NODE_IPS",),
        values={
            "SKYPILOT_NUM_NODES": str(draft.layout.nodes),
            "SKYPILOT_NUM_GPUS_PER_NODE": str(draft.fields.get(("resources", "gpus_per_node"), 0)),
        },
    )
    read_body(draft, dialect)


def _read_accelerators(draft: ImportDraft, document: YamlDocument) -> None:
    path = ("resources", "accelerators")
    if not document.has(*path):
        return
    names = document.names(*path)
    if document.is_mapping(*path):
        items = [f"{name}:{document.text(*path, name) or 1}" for name in names]
    elif document.is_list(*path):
        items = [document.text(*path, name) for name in names]
    else:
        items = [document.text(*path)]
    counts = {int(match[1] or 1) for item in items if (match := re.fullmatch(r"[^:]+(?::(\d{1,3}))?", item))}
    line = document.line(*path)
    document.mark_read(*path)
    if len(counts) != 1:
        draft.refuse(".".join(path), "is no single number of GPUs: set resources.gpus_per_node", line)
        return
    models = ", ".join(item.partition(":")[0] for item in items)
    change = f"becomes the number of GPUs; a spec names no model, so {models} is left out"
    draft.put(("resources", "gpus_per_node"), counts.pop(), ".".join(path), line, change)


def _read_recovery(draft: ImportDraft, document: YamlDocument) -> None:
    path = ("resources", "job_recovery", "max_restarts_on_errors")
    count = document.value(*path)
    if isinstance(count, int) and not isinstance(count, bool) and count >= 0:
        document.text("resources", "job_recovery", "strategy")
        draft.put(("limits", "retries"), min(count, 100), ".".join(path), document.line(*path))
