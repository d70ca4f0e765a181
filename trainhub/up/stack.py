"""Which processes make up TrainHub on one machine, with what arguments and environment."""

from __future__ import annotations

import os
from pathlib import Path

from trainhub import installation
from trainhub.up.children import Child, python
from trainhub.up.valkey import Valkey

VALKEY_STAGE, WEB_STAGE, WORKING_STAGE = range(3)
"""Who works stops first, while the web server can still be told; Valkey stops last."""
WORKER_THREADS = 4


def valkey_child(valkey: Valkey, lock: int) -> Child:
    return Child("valkey", "embedded Valkey", valkey.argv, VALKEY_STAGE, pass_fds=(lock,))


def gateway_child(
    valkey: Valkey, bind: installation.Bind, shown: installation.Certificate, lock: int
) -> Child:
    """Valkey's way out to other machines, by TLS."""
    where = (bind.host, str(bind.port), str(valkey.socket), str(shown.chain), str(shown.key))
    return Child(
        "gateway", "broker gateway", python("-m", "trainhub.gateway", *where), WEB_STAGE, pass_fds=(lock,)
    )


def children(node: str, lock: int) -> list[Child]:
    """The hub's processes and this machine's agent, in the order in which they are started."""
    shown = installation.certificate()
    return [
        *services(lock),
        agent(node, shown.ca if shown is not None else None, installation.NODE_TOKEN_FILE),
    ]


def services(lock: int) -> list[Child]:
    """The hub alone."""
    return [_web(lock), _worker()]


def _web(lock: int) -> Child:
    return Child("web", "web server", python("-m", "trainhub.serving"), WEB_STAGE, pass_fds=(lock,))


def _worker() -> Child:
    argv = python(
        "-m", "celery", "--app", "trainhub.celery", "--quiet", "worker", "--pool", "threads", "--clock"
    )
    argv += (
        "--concurrency",
        str(WORKER_THREADS),
        "--queues",
        "hub",
        "--hostname",
        "hub@%h",
        "--loglevel",
        installation.LOG_LEVEL,
    )
    argv += ("--without-gossip", "--without-mingle", "--without-heartbeat")
    # The checks load every page's code, which the web server has done already.
    return Child("worker", "worker", argv, WORKING_STAGE, env={"CELERY_SKIP_CHECKS": "1"})


def agent(node: str, authority: Path | None, token_file: Path) -> Child:
    """This machine's agent. `authority`: the certificate that the hub's must come from, None for those of
    this machine."""
    given = {
        "TRAINHUB_HUB_URL": installation.agent_url(),
        "TRAINHUB_HUB_CA": "" if authority is None else str(authority),
        "TRAINHUB_NODE_NAME": node,
        "TRAINHUB_NODE_TOKEN_FILE": str(token_file),
        "TRAINHUB_NODE_DIR": str(installation.NODE_DIR),
        "TRAINHUB_NODE_RUN_AS": installation.RUN_AS,
    }
    if installation.is_open():
        # Other nodes have to reach this one too: not at the loopback, by which it reaches the hub.
        given["TRAINHUB_NODE_ADDRESS"] = (
            os.environ.get("TRAINHUB_NODE_ADDRESS") or installation.outer_address()
        )
    return Child("agent", "node agent", python("-m", "trainhub_node", "run"), WORKING_STAGE, env=given)
