"""Which processes make up TrainHub on one machine, with what arguments and environment."""

from __future__ import annotations

import os

from trainhub import places
from trainhub.up.children import Child, python
from trainhub.up.valkey import Valkey

VALKEY_STAGE, WEB_STAGE, WORKING_STAGE = range(3)
"""Who works stops first, while the web server can still be told; Valkey stops last."""
WORKER_THREADS = 4


def valkey_child(valkey: Valkey, lock: int) -> Child:
    return Child("valkey", "embedded Valkey", valkey.argv, VALKEY_STAGE, pass_fds=(lock,))


def gateway_child(valkey: Valkey, bind: places.Bind, shown: places.Certificate, lock: int) -> Child:
    """Valkey's way out to other machines, by TLS."""
    where = (bind.host, str(bind.port), str(valkey.socket), str(shown.chain), str(shown.key))
    return Child("gateway", "broker gateway", python("-m", "trainhub.gateway", *where), WEB_STAGE, pass_fds=(lock,))


def children(node: str, lock: int) -> list[Child]:
    """The hub's processes and this machine's agent, in the order in which they are started."""
    return [*services(lock), _agent(node)]


def services(lock: int) -> list[Child]:
    """The hub alone."""
    return [_web(lock), _worker()]


def _web(lock: int) -> Child:
    host, port = places.bind()
    argv = python("-m", "uvicorn", "trainhub.asgi:application", "--host", host or "0.0.0.0", "--port", str(port))  # noqa: S104
    argv += ("--loop", "uvloop", "--http", "trainhub.one_write:OneWrite", "--ws", "websockets-sansio", "--lifespan", "on")
    argv += ("--ws-per-message-deflate", "false")  # small messages to many sockets: packing each costs more than it saves
    argv += ("--no-access-log", "--no-server-header", "--log-level", "warning", "--timeout-graceful-shutdown", "3")
    shown = places.certificate()
    if shown is not None:
        argv += ("--ssl-certfile", str(shown.chain), "--ssl-keyfile", str(shown.key))
    return Child("web", "web server", argv, WEB_STAGE, pass_fds=(lock,))


def _worker() -> Child:
    argv = python("-m", "celery", "--app", "trainhub.celery", "--quiet", "worker", "--pool", "threads", "--clock")
    argv += ("--concurrency", str(WORKER_THREADS), "--queues", "hub", "--hostname", "hub@%h", "--loglevel", places.LOG_LEVEL)
    argv += ("--without-gossip", "--without-mingle", "--without-heartbeat")
    # The checks load every page's code, which the web server has done already.
    return Child("worker", "worker", argv, WORKING_STAGE, env={"CELERY_SKIP_CHECKS": "1"})


def _agent(node: str) -> Child:
    shown = places.certificate()
    given = {
        "TRAINHUB_HUB_URL": places.agent_url(),
        "TRAINHUB_HUB_CA": str(shown.ca) if shown is not None and shown.ca is not None else "",
        "TRAINHUB_NODE_NAME": node,
        "TRAINHUB_NODE_TOKEN_FILE": str(places.NODE_TOKEN_FILE),
        "TRAINHUB_NODE_DIR": str(places.NODE_DIR),
        "TRAINHUB_NODE_RUN_AS": places.RUN_AS,
    }
    if places.is_open():
        # Other nodes have to reach this one too: not at the loopback, by which it reaches the hub.
        given["TRAINHUB_NODE_ADDRESS"] = os.environ.get("TRAINHUB_NODE_ADDRESS") or places.outer_address()
    return Child("agent", "node agent", python("-m", "trainhub_node", "run"), WORKING_STAGE, env=given)
