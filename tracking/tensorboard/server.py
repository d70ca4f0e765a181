"""The process that serves TensorBoard on one folder of event files, over a Unix socket.

python -m tracking.tensorboard.server FOLDER SOCKET_DESCRIPTOR PREFIX IDLE_S

SOCKET_DESCRIPTOR: a listening socket that the web server has passed on. PREFIX: the path below which the hub
offers TensorBoard. It prints a line when it answers. It ends when its standard input ends, so with the web
server that has started it, and after IDLE_S seconds without a request."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

from tracking.tensorboard import confinement

READY = "TensorBoard answers"
# How often the folder is looked at for new data.
RELOAD_S = 5
_LOOK_EVERY_S = 1.0
# It reads files of a format of its own, which the hub does not pass on.
_LEFT_OUT = "DebuggerV2Plugin"


class IdleClock:
    """A WSGI application that ends the process when `app` was not requested for long."""

    def __init__(self, app: Any, idle_s: float) -> None:
        self._app = app
        self._idle_s = idle_s
        self._requested_at = time.monotonic()
        threading.Thread(target=self._watch, daemon=True).start()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        self._requested_at = time.monotonic()
        response: Iterable[bytes] = self._app(environ, start_response)
        return response

    def _watch(self) -> None:
        while time.monotonic() - self._requested_at < self._idle_s:
            time.sleep(min(_LOOK_EVERY_S, self._idle_s))
        os._exit(0)


def main() -> None:
    folder, descriptor, prefix, idle_s = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], float(sys.argv[4])
    # First of all: Landlock limits this thread and those that it starts later, as TensorBoard's imports do.
    if not confinement.restrict_files(folder):
        sys.stderr.write("This kernel has no Landlock: only the account limits TensorBoard.\n")
    confinement.limit_resources()
    _start(folder, descriptor, prefix, idle_s)
    confinement.drop_root()
    sys.stdout.write(f"{READY}\n")
    sys.stdout.flush()
    # Nothing is ever written to it: it ends when the web server does, however that ends.
    sys.stdin.buffer.read()
    os._exit(0)


def _start(folder: Path, descriptor: int, prefix: str, idle_s: float) -> None:
    default, program = import_module("tensorboard.default"), import_module("tensorboard.program")
    serving = import_module("werkzeug.serving")

    def unix_server(app: Any, _: object) -> Any:
        """Returns what TensorBoard's program takes for its server."""
        server = serving.make_server("unix://", 0, IdleClock(app, idle_s), threaded=True, fd=descriptor)
        server.get_url = lambda: prefix
        return server

    plugins = [plugin for plugin in default.get_static_plugins() if _name(plugin) != _LEFT_OUT]
    board = program.TensorBoard(plugins=plugins, server_class=unix_server)
    board.configure(
        argv=["tensorboard"],
        logdir=str(folder),
        path_prefix=prefix,
        load_fast="false",
        reload_interval=RELOAD_S,
    )
    # Its log of requests would fill the file at once.
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    board.launch()


def _name(plugin: Any) -> str:
    return str(getattr(plugin, "__name__", ""))


if __name__ == "__main__":
    main()
