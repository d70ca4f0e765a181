"""Downloads the inputs of an attempt before its ranks start: each in a process of its own, which the child
watches."""

from __future__ import annotations

import os
import time

from trainhub_launch.data.downloads import DataDownload
from trainhub_node.data.comparison.changed_files import ChangedFiles, report_changes
from trainhub_node.data.library_process import LibraryProcess, require_library
from trainhub_node.environments.hub_connection import hub_proxies
from trainhub_node.supervisor.gang import PreparationFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trainhub_launch.json_types import JsonObject
    from trainhub_node.data.account_process import Record
    from trainhub_node.supervisor.gang import Gang

LINE_S = 5.0
GB, MB = 1e9, 1e6


def download_inputs(gang: Gang) -> None:
    """Sets `gang.downloads` and `gang.data_tree`. Raises PreparationFailed, and StopRequested."""
    require_library(gang)
    for name, item in sorted(gang.order["downloads"].items()):
        gang.check_stop()
        _Download(gang, name, item).run()
    gang.data_tree = f"{gang.terms['data']['trees']}/{os.path.basename(gang.folder.path)}"


class _Download:
    """The download of one input."""

    def __init__(self, gang: Gang, name: str, item: Record) -> None:
        self._gang = gang
        self._name = name
        self._item = item
        self._result: Record = {}
        self._lines = _ProgressLines(gang, name)

    def run(self) -> None:
        last_words = LibraryProcess(self._gang, "data", self._request(), self._take).run()
        if "done" not in self._result:
            raise PreparationFailed("data", self._failure(last_words))
        self._gang.downloads[self._name] = self._result["done"]["path"]
        self._lines.finish(self._result["done"])
        changes = ChangedFiles()
        changes.add_json(self._result["done"]["changes"])
        report_changes(self._gang, self._name, changes)

    def _take(self, facts: Record) -> None:
        if "files" in facts:
            self._lines.write(facts)
        elif "note" in facts:
            self._gang.log(f"Input {self._name}: {facts['note']}")
        else:
            self._result |= facts

    def _request(self) -> Record:
        gang, terms, account = self._gang, self._gang.terms["data"], self._gang.terms["account"]
        isolation = gang.terms.get("isolation") or {}
        download = DataDownload.from_json(self._item)
        has_overlay = isolation.get("namespaces") and not gang.uses_image
        return {
            **self._item,
            "manifest": self._manifest(),
            "list_key": download.list_key if download.manifest else "",
            "is_file": self._item.get("is_file", False),
            "secret": gang.secrets.get(download.secret_key, ""),
            "peers": self._peers(download),
            "input": self._name,
            "attempt": os.path.basename(gang.folder.path),
            "cache": terms["cache"],
            "agent": os.path.basename(terms["trees"]),
            "limit": terms["limit"],
            # Whoever has the agent's account could write to what it owns.
            "copies": account is None and not isolation.get("namespaces") and not gang.uses_image,
            "group": account["gid"] if account is not None else None,
            "owner": account["uid"] if account is not None and has_overlay else None,
        }

    def _peers(self, download: DataDownload) -> JsonObject | None:
        """Returns how the process learns which nodes have the files; None if it takes none from them."""
        ticket = self._gang.secrets.get(download.peer_key, "")
        if not ticket:
            return None
        return {
            "swarm": download.swarm,
            "url": download.peers,
            "ticket": ticket,
            "ca": self._gang.terms["ca"],
            "proxies": hub_proxies(self._gang, download.peers),
        }

    def _manifest(self) -> str:
        """Returns where the agent has put the list of the files, "" if there is none."""
        sha256 = self._item.get("manifest", "")
        return self._gang.folder.manifest(sha256) if sha256 else ""

    def _failure(self, last_words: str) -> str:
        node = self._gang.terms["node"]
        if "error" in self._result:
            return f"Input {self._name} on node {node}: {self._result['error']}"
        return f"Input {self._name} could not be downloaded on node {node}: {last_words:.500}"


class _ProgressLines:
    """Lines of the preparation log about a download, at most one in LINE_S seconds."""

    def __init__(self, gang: Gang, name: str) -> None:
        self._gang = gang
        self._name = name
        self._began: tuple[float, int] | None = None
        self._next_at = 0.0

    def write(self, facts: Record) -> None:
        now = time.monotonic()
        if self._began is None:
            self._began = (now, facts["bytes"])
        if now < self._next_at:
            return
        self._next_at = now + LINE_S
        seconds, size = now - self._began[0], facts["bytes"] - self._began[1]
        speed = ""
        if seconds > 0 and size > 0:
            rest_s = (facts["total_bytes"] - facts["bytes"]) * seconds / size
            speed = f", {size / seconds / MB:,.1f} MB/s, about {_duration(rest_s)} left"
        self._gang.log(
            f"Input {self._name}: {facts['bytes'] / GB:,.2f} of {facts['total_bytes'] / GB:,.2f} GB, "
            f"{facts['files']:,} of {facts['total_files']:,} files{speed}."
        )

    def finish(self, done: Record) -> None:
        here = done["files"] - done["downloaded_files"]
        how = (
            f"{done['downloaded_bytes'] / GB:,.2f} GB downloaded in {done['seconds']:,.1f} s{_origin(done)}"
            if done["downloaded_files"]
            else "nothing to download"
        )
        self._gang.log(
            f"Input {self._name}: {done['files']:,} files with {done['bytes'] / GB:,.2f} GB; {how}, "
            f"{here:,} files were here already."
        )


def _origin(done: Record) -> str:
    """Returns where the bytes came from, if that was not the store alone."""
    by_node = {name: size for name, size in sorted(done["peer_bytes"].items()) if size}
    if not by_node:
        return ""
    from_nodes = sum(by_node.values())
    return (
        f" ({max(0, done['downloaded_bytes'] - from_nodes) / GB:,.2f} GB from the store, "
        f"{from_nodes / GB:,.2f} GB from {'node' if len(by_node) == 1 else 'nodes'} {', '.join(by_node)})"
    )


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"
