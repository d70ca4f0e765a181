"""A process that reads stores for the child of an attempt: with the library that does so, and the
credentials, which are in no other process."""

from __future__ import annotations

import os
import sys

from trainhub_launch.data.stores import HUB, URL, Store
from trainhub_node import records
from trainhub_node.environments import process_wait
from trainhub_node.environments.hub_connection import hub_variables, proxy_variables
from trainhub_node.supervisor import rank
from trainhub_node.supervisor.gang import PreparationFailed
from trainhub_node.supervisor.variables import LIBRARIES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, NoReturn

    from trainhub_node.data.account_process import Record
    from trainhub_node.supervisor.gang import Gang

CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
READ_BYTES = 65536
MAX_ERROR_BYTES = 16384


def require_library(gang: Gang) -> None:
    """Raises PreparationFailed on a node without the library."""
    if not (gang.terms.get("data") or {}).get("library"):
        raise PreparationFailed(
            "data",
            f"Node {gang.terms['node']} has no obstore, which downloads data: install it for its agent.",
        )


def store_variables(terms: Mapping[str, Any], store: Store) -> dict[str, str]:
    """Returns the environment of a process that connects to `store`. `terms`: of an attempt."""
    settings = terms["pip"]
    certificates = {name: value for name, value in settings.items() if name in CERTIFICATES}
    if store.kind == HUB:
        return library_variables() | hub_variables(terms, store.settings[URL], certificates)
    return library_variables() | proxy_variables(settings) | certificates


def library_variables() -> dict[str, str]:
    return {name: os.environ[name] for name in LIBRARIES if name in os.environ}


class LibraryProcess:
    """Runs the role `role` of the bootstrap with the request on its standard input. `on_line` gets each line
    of JSON that it writes, `on_poll` is called meanwhile. `_pending`: the beginning of a line that has not
    ended yet."""

    def __init__(
        self,
        gang: Gang,
        role: str,
        request: Record,
        on_line: Callable[[Record], None],
        on_poll: Callable[[], None] = lambda: None,
    ) -> None:
        self._gang = gang
        self._role = role
        self._content = request
        self._on_line = on_line
        self._on_poll = on_poll
        self._pending = b""

    def run(self) -> str:
        """Returns once it has ended: the last line of its errors, or with which code. Raises
        StopRequested."""
        output, self._output = os.pipe2(os.O_CLOEXEC)
        errors = os.memfd_create("errors")
        try:
            code = self._wait(output, errors)
            self._read(output)
            text = os.pread(errors, MAX_ERROR_BYTES, 0).decode(errors="replace")
        finally:
            os.close(output)
            os.close(errors)
        return ([line for line in text.splitlines() if line.strip()] or [f"it ended with code {code}"])[-1]

    def _wait(self, output: int, errors: int) -> int:
        request = os.memfd_create("request", os.MFD_CLOEXEC)
        os.write(request, records.dumps(self._content))
        os.lseek(request, 0, os.SEEK_SET)
        os.set_blocking(output, False)
        pid = os.fork()
        if pid == 0:
            self._exec(request, errors)
        os.close(request)
        os.close(self._output)
        try:
            return process_wait.wait_for_exit(self._gang, pid, lambda: self._poll(output))
        except BaseException:
            process_wait.end_group(pid)
            raise

    def _poll(self, output: int) -> None:
        self._read(output)
        self._on_poll()

    def _exec(self, request: int, errors: int) -> NoReturn:
        try:
            os.setpgid(0, 0)
            rank.redirect_output(errors)
            os.dup2(self._output, 1)
            os.dup2(request, 0)
            os.chdir("/")
            rank.reset_signals()
            variables = store_variables(self._gang.terms, Store.from_json(self._content["store"]))
            argv = [sys.executable, "-I", "-S", sys.argv[0], self._role, self._gang.terms["data"]["library"]]
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
                facts: Record = dict(records.loads(line))  # type: ignore[call-overload]
                self._on_line(facts)
