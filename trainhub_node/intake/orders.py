"""Checks that an order from the hub is for the claimed attempt and names nothing outside its folder."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from trainhub_launch.data.downloads import DataDownload
from trainhub_launch.data.outputs import StoreFolder
from trainhub_launch.data.probe_work import LIST, TEST
from trainhub_launch.data.shares import read_share
from trainhub_launch.data.stores import FOLDER, HUB, HUB_SETTINGS, OUTPUT_KINDS, STORE_KINDS
from trainhub_launch.errors import SpecError, WireError
from trainhub_launch.order import MAKE, NodeOrder, OrderKind
from trainhub_launch.spec import INPUT_NAME

SHA256 = re.compile(r"[0-9a-f]{64}")
LOG_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,199}")
# They become variables of uv and pip, and a line of a file.
PACKAGE_INDEX = re.compile(r"https?://[A-Za-z0-9._:\[\]/-]{1,500}")
TICKET = re.compile(r"[A-Za-z0-9_-]{1,200}")
WHOLE_NUMBERS = ("rank", "local_rank", "node_rank")


def parse(data: Any, run: str, attempt: int) -> NodeOrder:
    """Returns the order in `data`, which must be for this attempt. Raises WireError, which names the wrong
    field."""
    try:
        order = NodeOrder.from_json(data)
        _check(order, data, run, attempt)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise WireError(f"not an order: {error!r:.200}") from error
    return order


def _check(order: NodeOrder, data: Mapping[str, Any], run: str, attempt: int) -> None:
    if type(order.attempt) is not int or (order.run, order.attempt) != (run, attempt):
        raise WireError(f"the order is for run {order.run!r:.100}, attempt {order.attempt!r:.100}")
    if order.kind not in list(OrderKind):
        raise WireError(f"kind {order.kind!r:.100} is not known to this agent; upgrade it")
    if order.kind != OrderKind.RUN:
        _check_no_run(order)
    if order.kind == OrderKind.BUILD:
        _check_build(order)
    elif order.kind == OrderKind.PROBE:
        _check_probe(order)
    elif type(order.snapshot) is not str or not SHA256.fullmatch(order.snapshot):
        raise WireError(f"snapshot {order.snapshot!r:.100} is not a SHA-256 in lowercase hexadecimal digits")
    for name in ("go", "head"):
        if type(getattr(order, name)) is not bool:
            raise WireError(f"{name} must be true or false")
    if order.person is not None:
        _check_texts("person", (order.person,))
    _check_texts("launcher", order.command.launcher)
    _check_texts("requirements", order.environment.requirements)
    _check_texts("index_urls", order.environment.index_urls)
    _check_texts("python", (order.environment.python,))
    _check_texts("lock", (order.environment.lock,))
    _check_packages(order)
    _check_make(order)
    _check_checkpoint(order)
    _check_inputs(order)
    _check_mounts(order)
    _check_downloads("downloads", order.downloads)
    _check_downloads("references", order.references)
    _check_lists(order)
    _check_outputs(order)
    if order.probe and order.kind != OrderKind.PROBE:
        raise WireError("probe stands only in an order of that kind")
    _check_texts("values", (*order.values, *order.values.values()))
    for process in data["command"]["processes"]:
        _check_process(process)


def _check_packages(order: NodeOrder) -> None:
    for name, form in (("package_index", PACKAGE_INDEX), ("package_ticket", TICKET)):
        value = getattr(order, name)
        if type(value) is not str or (value and not form.fullmatch(value)):
            raise WireError(f"{name} {value!r:.100} has not the form of one")


def _check_make(order: NodeOrder) -> None:
    if not order.make and order.environment.kind != MAKE:
        return
    if order.kind != OrderKind.BUILD or order.environment.kind != MAKE:
        raise WireError("make stands only in an order to build an environment of kind make")
    for name, form in (("upload", PACKAGE_INDEX), ("ticket", TICKET)):
        value = order.make[name]
        if type(value) is not str or not form.fullmatch(value):
            raise WireError(f"make.{name} {value!r:.100} has not the form of one")
    if type(order.make["kind"]) is not str:
        raise WireError("make.kind must be a text")
    for name in ("timeout_s", "max_bytes"):
        if type(order.make[name]) not in (int, float) or order.make[name] <= 0:
            raise WireError(f"make.{name} must be a number above 0")


def _check_checkpoint(order: NodeOrder) -> None:
    if order.checkpoint is None:
        return
    checkpoint = order.checkpoint
    keys = (file.key for file in checkpoint.stored_files)
    for path in (checkpoint.folder, *(file.path for file in checkpoint.all_files), *keys):
        if type(path) is not str or "\0" in path or any(part in ("", ".", "..") for part in path.split("/")):
            raise WireError(f"checkpoint has {path!r:.100}, which is no path below a folder")
    for file in checkpoint.all_files:
        if type(file.sha256) is not str or not SHA256.fullmatch(file.sha256):
            raise WireError(f"checkpoint has {file.sha256!r:.100}, which is no SHA-256")
    for name, folder in (("store", checkpoint.store), ("source", checkpoint.source)):
        if folder is not None:
            _check_store_folder(f"checkpoint.{name}", folder)
    if checkpoint.stored_files and checkpoint.source is None:
        raise WireError("checkpoint has stored_files, and no source of them")


def _check_downloads(field: str, downloads: Mapping[str, DataDownload]) -> None:
    for name, download in downloads.items():
        if not INPUT_NAME.match(name):
            raise WireError(f"{field} has {name!r:.100}, which is no name of an input")
        if download.store.kind not in STORE_KINDS:
            raise WireError(
                f"{field}.{name} has a store of kind {download.store.kind!r:.100}; upgrade the agent"
            )
        texts = (
            download.path,
            download.secret,
            download.scope,
            download.manifest,
            *download.store.settings.values(),
        )
        _check_texts(f"{field}.{name}", texts)
        if download.store.kind == HUB and not (
            download.manifest and set(HUB_SETTINGS) <= {*download.store.settings}
        ):
            raise WireError(f"{field}.{name} is at the hub, and needs a list, an address and a ticket")
        if download.manifest and not SHA256.fullmatch(download.manifest):
            raise WireError(f"{field}.{name} has the list {download.manifest!r:.100}, which is no SHA-256")
        if type(download.peers) is not str or (
            download.peers and not PACKAGE_INDEX.fullmatch(download.peers)
        ):
            raise WireError(f"{field}.{name}.peers {download.peers!r:.100} has not the form of an address")
        if type(download.is_file) is not bool or type(download.uses_changed) is not bool:
            raise WireError(f"{field}.{name}: is_file and uses_changed must be true or false")


def _check_outputs(order: NodeOrder) -> None:
    if order.outputs is None:
        return
    if order.kind != OrderKind.RUN:
        raise WireError("outputs stand only in an order of a run")
    _check_store_folder("outputs", order.outputs)


def _check_store_folder(name: str, folder: StoreFolder) -> None:
    if folder.store.kind not in OUTPUT_KINDS:
        raise WireError(f"{name} has a store of kind {folder.store.kind!r:.100}; upgrade the agent")
    _check_texts(name, (folder.path, folder.secret, *folder.store.settings.values()))
    if any(part in ("", ".", "..") for part in folder.path.removeprefix("/").split("/")):
        raise WireError(f"{name} has {folder.path!r:.100}, which is no path of a folder")
    if folder.store.kind == FOLDER and not folder.path.startswith("/"):
        raise WireError(f"{name} has {folder.path!r:.100}, which is no absolute path")


def _check_inputs(order: NodeOrder) -> None:
    for name, path in order.inputs.items():
        if not INPUT_NAME.match(name):
            raise WireError(f"inputs has {name!r:.100}, which is no name of one")
        if type(path) is not str or "\0" in path or not path.startswith("/"):
            raise WireError(f"inputs has {path!r:.100}, which is no absolute path")


def _check_mounts(order: NodeOrder) -> None:
    """A share becomes arguments of a program that root runs."""
    for name, mount in order.mounts.items():
        if not INPUT_NAME.match(name):
            raise WireError(f"mounts has {name!r:.100}, which is no name of an input")
        share = mount.share
        _check_texts(f"mounts.{name}", (share.host, share.export, share.options, mount.path))
        if type(share.read_only) is not bool:
            raise WireError(f"mounts.{name}.share.read_only must be true or false")
        try:
            checked = read_share(share.host, share.export, share.options, str(share.read_only).lower())
        except SpecError as error:
            raise WireError(f"mounts.{name}.share.{error.field} {error.message}") from error
        if checked != share or any(part in (".", "..") for part in mount.path.split("/")):
            raise WireError(f"mounts.{name} is not written in its shortest form")


def _check_no_run(order: NodeOrder) -> None:
    """Such an order runs nothing of a person's: whatever else it names would be carried out by mistake."""
    if order.command.processes or order.command.launcher or order.values or not order.go:
        raise WireError(f"an order of kind {order.kind} has processes, values or a second order")
    if order.snapshot != "":
        raise WireError(f"an order of kind {order.kind} names a snapshot")


def _check_probe(order: NodeOrder) -> None:
    if len(order.inputs) + len(order.mounts) + len(order.downloads) != 1:
        raise WireError("an order to probe must name one input, mount or download")
    if order.probe["work"] not in (TEST, LIST):
        raise WireError(f"probe.work {order.probe['work']!r:.100} is not known to this agent; upgrade it")
    for name, form in (("upload", PACKAGE_INDEX), ("ticket", TICKET)):
        value = order.probe[name]
        if type(value) is not str or not form.fullmatch(value):
            raise WireError(f"probe.{name} {value!r:.100} has not the form of one")


def _check_lists(order: NodeOrder) -> None:
    for name, listed in order.lists.items():
        if name not in order.inputs and name not in order.mounts:
            raise WireError(f"lists has {name!r:.100}, which is no input that lies on the node")
        if type(listed.manifest) is not str or not SHA256.fullmatch(listed.manifest):
            raise WireError(f"lists.{name} has {listed.manifest!r:.100}, which is no SHA-256")
        if type(listed.is_file) is not bool or type(listed.uses_changed) is not bool:
            raise WireError(f"lists.{name}: is_file and uses_changed must be true or false")


def _check_build(order: NodeOrder) -> None:
    if order.environment.kind == "system":
        raise WireError("an order to build an environment names an interpreter, which is not built")


def _check_process(process: Mapping[str, Any]) -> None:
    for name in WHOLE_NUMBERS:
        if type(process[name]) is not int or process[name] < 0:
            raise WireError(f"{name} {process[name]!r:.100} is not a whole number of at least 0")
    if type(process["log_name"]) is not str or not LOG_NAME.fullmatch(process["log_name"]):
        raise WireError(f"log_name {process['log_name']!r:.100} is not the name of a log")
    _check_texts("argv", process["argv"])


def _check_texts(field: str, values: Any) -> None:
    """Raises WireError unless all values are texts without NUL, which no path, argument or variable can
    hold."""
    if isinstance(values, str) or not all(type(value) is str and "\0" not in value for value in values):
        raise WireError(f"{field} must be a list of texts without NUL")
