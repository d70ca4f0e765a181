"""Reads command jobs of Azure Machine Learning, version 2."""

from __future__ import annotations

import re

from jobs.exports.azureml import MODES
from jobs.exports.note import Outcome
from jobs.imports.draft import NODES, PER_NODE, ImportDraft, ProcessLayout, ShellBody
from jobs.imports.process_start import MPI, PYTORCH, TENSORFLOW, read_body
from jobs.imports.shell_body import ShellDialect
from jobs.imports.task_fields import note_unread, put_variables
from jobs.imports.yaml_document import FIELD, YamlDocument
from trainhub_launch.errors import SpecError
from trainhub_launch.spec import EXPERIMENT_NAME, INPUT_NAME

_DATASTORE = re.compile(r"azureml://(?:\S*/)?datastores/([^/\s]+)/paths/?(\S*)\Z")
_ASSET = re.compile(r"azureml:([^:@/\s]+)(?::(\d{1,9})|@latest)?\Z")
_ENVIRONMENT = re.compile(r"azureml:([^:@/\s]+)(?::([^\s@]+)|@[A-Za-z]+)?\Z")
_EXPRESSION = re.compile(r"\$\{\{\s*(inputs|outputs)\.([A-Za-z][A-Za-z0-9_]*)\s*\}\}")
_REMEDIES = {
    "compute": "choose a cluster of TrainHub",
    "code": "send the folder of the code with the spec",
    "identity": "TrainHub runs it as you",
    "services": "TrainHub opens none",
    "queue_settings": "see priority",
    "outputs": "what a script leaves in outputs/ is kept; set outputs to keep it in a datastore",
    "resources": "choose a cluster of TrainHub with such machines",
}


def parse(text: str) -> ImportDraft:
    draft, document = ImportDraft(), YamlDocument(text)
    kind = document.text("type")
    if kind not in ("command", ""):
        raise SpecError(FIELD, f"type: {kind!r:.40} is not imported: only a command job is one run")
    document.mark_read("$schema")
    if name := document.text("display_name"):
        draft.put(("display_name",), name[:200], "display_name", document.line("display_name"))
    if experiment := document.text("experiment_name"):
        line = document.line("experiment_name")
        if EXPERIMENT_NAME.match(experiment):
            draft.put(("experiment",), experiment, "experiment_name", line)
        else:
            draft.refuse("experiment_name", f"{experiment!r:.60} is no name of an experiment here", line)
    if document.text("code") in (".", "./"):
        line = document.line("code")
        draft.note("code", Outcome.SAME, "is the folder that you send with the spec", line)
    elif document.has("code"):
        draft.refuse("code", "send this folder with the spec", document.line("code"))
    _read_environment(draft, document)
    put_variables(draft, document, ("environment_variables",))
    _read_layout(draft, document)
    timeout = document.value("limits", "timeout")
    if isinstance(timeout, int) and not isinstance(timeout, bool) and timeout > 0:
        line = document.line("limits", "timeout")
        draft.put(("limits", "timeout_s"), timeout, "limits.timeout", line)
    for tag in document.names("tags"):
        draft.put(("tags", tag), document.text("tags", tag), f"tags.{tag}", document.line("tags", tag))
    values = _read_inputs(draft, document)
    if document.has("command"):
        command = _without_expressions(draft, document, values)
        draft.body = ShellBody(command, document.text_line("command"), "command")
    note_unread(draft, document, _REMEDIES)
    return draft


def add_azureml_command(draft: ImportDraft) -> None:
    renames = {"AZUREML_NODE_COUNT": "WORLD_SIZE", "AZ_BATCHAI_TASK_INDEX": "RANK"}
    read_body(draft, ShellDialect(renames, addresses=("AZ_BATCH_MASTER_NODE",)))


def _read_environment(draft: ImportDraft, document: YamlDocument) -> None:
    if not document.has("environment"):
        return
    match = _ENVIRONMENT.match(document.text("environment"))
    line = document.line("environment")
    if match is None:
        document.mark_read("environment")
        draft.refuse("environment", "make an environment from it here, and name it in the spec", line)
        return
    change = "" if match[1] == "system" else "it must be the name of an environment of your workspace here"
    draft.put(("environment", "name"), match[1], "environment", line, change)
    if match[2]:
        draft.fields[("environment", "version")] = match[2]


def _read_layout(draft: ImportDraft, document: YamlDocument) -> None:
    count = document.value("resources", "instance_count")
    nodes = count if isinstance(count, int) and not isinstance(count, bool) and count > 0 else 1
    if nodes == count:
        draft.put(NODES, nodes, "resources.instance_count", document.line("resources", "instance_count"))
    kind = document.text("distribution", "type").lower()
    if not kind:
        draft.layout = ProcessLayout(nodes)
        return
    line = document.line("distribution", "type")
    if kind == TENSORFLOW:
        draft.fields[("distribution", "type")] = TENSORFLOW
        draft.layout = ProcessLayout(nodes, None, TENSORFLOW)
        for name in ("worker_count", "parameter_server_count"):
            number = document.value("distribution", name)
            if isinstance(number, int) and not isinstance(number, bool):
                field = f"distribution.{name}"
                draft.put(("distribution", name), number, field, document.line("distribution", name))
        if ("distribution", "worker_count") not in draft.fields:
            draft.put(
                ("distribution", "worker_count"), nodes, "distribution", line, f"{nodes}, one on each node"
            )
        draft.fields[("resources", "node_count")] = nodes
    elif kind in (PYTORCH, MPI):
        per_node = document.value("distribution", "process_count_per_instance")
        per_node = per_node if isinstance(per_node, int) and per_node > 0 else 1
        draft.layout = ProcessLayout(nodes, per_node, kind)
        field = "distribution.process_count_per_instance"
        draft.put(PER_NODE, per_node, field, line)
    else:
        draft.refuse("distribution.type", f"{kind!r:.40} is none of pytorch, mpi and tensorflow", line)


def _read_inputs(draft: ImportDraft, document: YamlDocument) -> dict[str, str]:
    """Returns what stands for each input in a command: a variable with a path, or a value."""
    values: dict[str, str] = {}
    modes = {theirs: ours for ours, theirs in MODES.items()}
    for name in document.names("inputs"):
        field, line = f"inputs.{name}", document.line("inputs", name)
        if not document.is_mapping("inputs", name):
            values[name] = document.text("inputs", name)
            draft.note(field, Outcome.CHANGED, "a plain value: it stands in the command now", line)
            continue
        path = document.text("inputs", name, "path")
        kind = document.text("inputs", name, "type")
        mode = document.text("inputs", name, "mode")
        datastore, asset = _DATASTORE.match(path), _ASSET.match(path)
        if not INPUT_NAME.match(name) or not (datastore or asset):
            draft.refuse(
                field, f"{path!r:.80}: make a datastore or a dataset here, and name it in inputs", line
            )
            continue
        values[name] = f"$TRAINHUB_INPUT_{name.upper()}"
        item = ("inputs", name)
        change = "it must be a datastore or a dataset of your workspace here"
        if datastore:
            draft.put((*item, "datastore"), datastore[1], field, line, change)
            if datastore[2].strip("/"):
                draft.fields[(*item, "path")] = datastore[2].strip("/")
        elif asset:
            draft.put((*item, "dataset"), asset[1], field, line, change)
            if asset[2]:
                draft.fields[(*item, "version")] = int(asset[2])
        if mode in modes:
            draft.fields[(*item, "mode")] = modes[mode]
        elif mode:
            draft.refuse(f"{field}.mode", f"{mode!r:.40} has no counterpart", line)
        if kind not in ("", "uri_folder", "uri_file"):
            draft.refuse(f"{field}.type", f"{kind!r:.40}: a script gets a folder with its files", line)
    return values


def _without_expressions(draft: ImportDraft, document: YamlDocument, values: dict[str, str]) -> str:
    """Returns the command with variables instead of `${{inputs.NAME}}`."""

    def replace(match: re.Match[str]) -> str:
        kind, name = match.groups()
        if kind == "outputs":
            message = f"{match[0]} becomes the folder outputs/{name}"
            draft.note("command", Outcome.CHANGED, message, document.text_line("command"))
            return f"outputs/{name}"
        return values.get(name, match[0])

    return _EXPRESSION.sub(replace, document.text("command"))
