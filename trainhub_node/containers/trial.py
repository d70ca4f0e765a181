"""Tries whether the container engine of this machine starts containers that runs can enter.

Only a trial tells: engines fail in many ways, such as by limits that a service may not raise."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

from trainhub_node import records
from trainhub_node.containers.container import Container
from trainhub_node.containers.engine import PODMAN, TRIAL, Engine, EngineError, Mount, error_lines
from trainhub_node.containers.view import ContainerView
from trainhub_node.isolation import namespaces
from trainhub_node.isolation import trial as isolation_trial

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Sequence
    from typing import IO, NoReturn
else:
    import _signal as signal

REQUEST = "request.json"
IMAGE = "localhost/trainhub-trial:1"
RUN, ATTEMPT = TRIAL, 1
# Less than the agent waits, so that it can be told which call it was.
TIMEOUT_S = 40.0


def run(folder: str) -> NoReturn:
    """Starts a container and a process in it as for a run. `folder` holds the request: the terms of the
    engine, an image without any file (`root.tar`) and the account of the process. Prints nothing, or why it
    is impossible, and exits. Runs in a process of its own."""
    request = records.read(f"{folder}/{REQUEST}")
    engine = Engine.from_terms(request["engine"])
    reason = ""
    try:
        _try(engine, folder, int(request["uid"]))
    except (OSError, EngineError, namespaces.NamespaceError, ValueError) as error:
        reason = namespaces.reason(error)
    finally:
        _remove(engine)
    sys.stdout.write(reason)
    sys.stdout.flush()
    os._exit(0)


def _try(engine: Engine, folder: str, uid: int) -> None:
    own = f"{folder}/own"
    os.makedirs(own, exist_ok=True)
    if os.geteuid() == 0:
        os.chown(own, uid, uid)
    if _call(engine, engine.image_command(IMAGE), may_fail=True) is None:
        with open(f"{folder}/root.tar", "rb") as file:
            _call(engine, engine.import_command(IMAGE), stdin=file)
    # Of a trial that was killed.
    _remove(engine)
    pid_file = f"{folder}/pid"
    start = engine.start_command(IMAGE, RUN, ATTEMPT, [Mount(own)], pid_file=pid_file)
    _call(engine, start)
    if engine.name == PODMAN:
        with open(pid_file, encoding="ascii") as pid:
            container = Container(int(pid.read()))
    else:
        container = Container(int(_call(engine, engine.pid_command(RUN, ATTEMPT)) or 0))
    view = ContainerView([own], {})
    # Only now: the engine would inherit it, and not notice when its own processes end.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGCHLD, signal.SIGUSR1))
    try:
        made = container.make_namespaces(view, is_agents=uid == os.geteuid())
        isolation_trial.use(made, own, uid)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _remove(engine: Engine) -> None:
    _call(engine, engine.remove_command(engine.container_name(RUN, ATTEMPT)), may_fail=True)


def _call(
    engine: Engine,
    command: Sequence[str],
    *,
    stdin: IO[bytes] | int = subprocess.DEVNULL,
    may_fail: bool = False,
) -> str | None:
    # Files, not pipes: what the engine leaves running keeps its end of a pipe open.
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        try:
            code = subprocess.run(
                command,
                env=engine.start_variables,
                stdin=stdin,
                stdout=output,
                stderr=errors,
                timeout=TIMEOUT_S,
                cwd="/",
                check=False,
            ).returncode
        except subprocess.TimeoutExpired as error:
            raise EngineError(f"{engine.name} {command[1]} did not end within {TIMEOUT_S:.0f} s") from error
        output.seek(0)
        errors.seek(0)
        if code == 0:
            return output.read().decode(errors="replace")
        if may_fail:
            return None
        lines = error_lines(errors.read().decode(errors="replace"))
    raise EngineError(lines[-1] if lines else f"{engine.name} {command[1]} ended with {code}")
