"""`manage.py up --only …`: a server of a hub that has several, without an agent and services of its own."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from trainhub import env, installation
from trainhub.serving.link_address import link_bind
from trainhub.up import preflight, stack
from trainhub.up.console import Stop, say
from trainhub.up.first_steps import prepare_data, publish_services, wait_for_answer
from trainhub.up.separation import ownership
from trainhub.up.supervisor import Supervisor

ONLY = "--only"
WEB, WORKER = "web", "worker"
POSTGRESQL = ("postgres", "postgresql", "pgsql")


def parts_of(arguments: Sequence[str]) -> tuple[str, ...]:
    """Returns which parts of the hub `--only` names; nothing for other or wrong arguments."""
    if len(arguments) != 2 or arguments[0] != ONLY:
        return ()
    parts = tuple(dict.fromkeys(arguments[1].split(",")))
    return parts if set(parts) <= {WEB, WORKER} else ()


def check_services(parts: Sequence[str] = ()) -> None:
    """Raises Stop if settings that several servers need are missing. Without `parts`: of a start that says by
    SERVER_ADDRESS that there may be others."""
    if not parts and not link_bind():
        return
    if env.secret("DATABASE_URL").partition(":")[0] not in POSTGRESQL:
        raise Stop("Several servers need PostgreSQL: set DATABASE_URL to the database of the hub.")
    if not installation.configured_redis_url():
        raise Stop("Several servers need a Valkey or Redis that all of them reach: set REDIS_URL.")
    if WEB in parts and not link_bind():
        raise Stop(
            "Set SERVER_ADDRESS to the address and a port at which the other web servers reach this one, for "
            "example 10.0.0.5:8010."
        )


def run_parts(parts: Sequence[str], started: float) -> None:
    """Runs these parts until a signal. Raises Stop if they cannot be started."""
    check_services(parts)
    if ownership.is_separate(installation.DATA_DIR):
        hub = installation.DATA_DIR / ownership.HUB
        raise Stop(
            f"The hub on {installation.DATA_DIR} has an account of its own. Start this server as that "
            f"account, with DATA_DIR={hub}."
        )
    preflight.prepare_folders()
    lock = preflight.lock()
    preflight.check_restored()
    if WEB in parts:
        preflight.check_ports()
        preflight.check_certificate()
    preflight.make_secret_key()
    supervisor = Supervisor()
    try:
        if _start(supervisor, parts, lock):
            say(f"Server {installation.SERVER_NAME} is ready after {time.monotonic() - started:.1f} s.")
            say(f"Its logs are in {installation.LOGS}. Ctrl-C stops it; the other servers go on.")
            supervisor.keep()
            say(f"Stopping server {installation.SERVER_NAME}.")
    finally:
        supervisor.stop()
        installation.SERVICES_FILE.unlink(missing_ok=True)


def _start(supervisor: Supervisor, parts: Sequence[str], lock: int) -> bool:
    """Returns whether the parts run; False if a stop was requested meanwhile."""
    publish_services(None)
    # The web server loads its code meanwhile, and serves once the other end of this pipe is closed.
    gate, opener = os.pipe()
    if WEB in parts:
        supervisor.start(stack.web(lock, gate))
    prepare_data("--further")
    os.close(opener)
    if supervisor.stop_requests:
        return False
    if WORKER in parts:
        supervisor.start(stack.worker())
    return WEB not in parts or wait_for_answer(supervisor)
