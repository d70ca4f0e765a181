"""Downloads the inputs of an attempt before its ranks start: each in a process of its own, which the child
watches."""

from __future__ import annotations

import os
import sys
import time

from trainhub_launch.data.downloads import DataDownload
from trainhub_node import records
from trainhub_node.environments import process_wait
from trainhub_node.environments.hub_connection import hub_proxies, proxy_variables
from trainhub_node.supervisor import rank
from trainhub_node.supervisor.gang import PreparationFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from trainhub_launch.json_types import JsonObject
    from trainhub_node.supervisor.gang import Gang

CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
LINE_S = 5.0
READ_BYTES = 65536
MAX_ERROR_BYTES = 16384
GB, MB = 1e9, 1e6


def download_inputs(gang: Gang) -> None:
    """Sets `gang.downloads` and `gang.data_tree`. Raises PreparationFailed, and StopRequested."""
    terms = gang.terms.get("data") or {}
    if not terms.get("library"):
        raise PreparationFailed(
            "data",
            f"Node {gang.terms['node']} has no obstore, which downloads data: install it for its agent.",
        )
    for name, item in sorted(gang.order["downloads"].items()):
        gang.check_stop()
        _Download(gang, name, item).run()
    gang.data_tree = f"{terms['trees']}/{os.path.basename(gang.folder.path)}"


class _Download:
    """The download of one input. `_pending`: the beginning of a line that has not ended yet."""

    def __init__(self, gang: Gang, name: str, item: dict[str, Any]) -> None:
        self._gang = gang
        self._name = name
        self._item = item
        self._pending = b""
        self._result: dict[str, Any] = {}
        self._lines = _ProgressLines(gang, name)

    def run(self) -> None:
        output, self._output = os.pipe2(os.O_CLOEXEC)
        errors = os.memfd_create("errors")
        try:
            code = self._wait(output, errors)
            self._read(output)
        finally:
            os.close(output)
            text = os.pread(errors, MAX_ERROR_BYTES, 0).decode(errors="replace")
            os.close(errors)
        if "done" not in self._result:
            raise PreparationFailed("data", self._failure(code, text))
        self._gang.downloads[self._name] = self._result["done"]["path"]
        self._lines.finish(self._result["done"])

    def _wait(self, output: int, errors: int) -> int:
        request = os.memfd_create("request", os.MFD_CLOEXEC)
        os.write(request, records.dumps(self._request()))
        os.lseek(request, 0, os.SEEK_SET)
        os.set_blocking(output, False)
        pid = os.fork()
        if pid == 0:
            self._exec(request, errors)
        os.close(request)
        os.close(self._output)
        try:
            return process_wait.wait_for_exit(self._gang, pid, lambda: self._read(output))
        except BaseException:
            process_wait.end_group(pid)
            raise

    def _request(self) -> dict[str, Any]:
        gang, terms, account = self._gang, self._gang.terms["data"], self._gang.terms["account"]
        download = DataDownload.from_json(self._item)
        isolation = gang.terms.get("isolation") or {}
        return {
            **self._item,
            "manifest": self._manifest(),
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

    def _exec(self, request: int, errors: int) -> NoReturn:
        try:
            os.setpgid(0, 0)
            rank.redirect_output(errors)
            os.dup2(self._output, 1)
            os.dup2(request, 0)
            os.chdir("/")
            rank.reset_signals()
            settings = self._gang.terms["pip"]
            variables = proxy_variables(settings) | {
                name: value for name, value in settings.items() if name in CERTIFICATES
            }
            argv = [sys.executable, "-I", "-S", sys.argv[0], "data", self._gang.terms["data"]["library"]]
            os.execve(argv[0], argv, variables)
        except BaseException as error:
            os.write(2, f"{error!r}\n".encode())
        finally:
            # After a fork nothing may return into the code of the parent.
            os._exit(rank.CANNOT_RUN)

    def _read(self, output: int) -> None:
        while True:
            try:
                data = os.read(output, READ_BYTES)
            except BlockingIOError:
                return
            if not data:
                return
            *lines, self._pending = (self._pending + data).split(b"\n")
            for line in lines:
                facts: dict[str, Any] = dict(records.loads(line))  # type: ignore[call-overload]
                if "files" in facts:
                    self._lines.write(facts)
                elif "note" in facts:
                    self._gang.log(f"Input {self._name}: {facts['note']}")
                else:
                    self._result |= facts

    def _failure(self, code: int, errors: str) -> str:
        node = self._gang.terms["node"]
        if "error" in self._result:
            return f"Input {self._name} on node {node}: {self._result['error']}"
        last = ([line for line in errors.splitlines() if line.strip()] or [f"it ended with code {code}"])[-1]
        return f"Input {self._name} could not be downloaded on node {node}: {last:.500}"


class _ProgressLines:
    """Lines of the preparation log about a download, at most one in LINE_S seconds."""

    def __init__(self, gang: Gang, name: str) -> None:
        self._gang = gang
        self._name = name
        self._began: tuple[float, int] | None = None
        self._next_at = 0.0

    def write(self, facts: dict[str, Any]) -> None:
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

    def finish(self, done: dict[str, Any]) -> None:
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


def _origin(done: dict[str, Any]) -> str:
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
