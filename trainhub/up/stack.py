"""The processes of TrainHub on one machine, with their arguments and environment."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from trainhub import env, installation
from trainhub.files import secrets_keyring
from trainhub.serving import START_GATE
from trainhub.up.children import Child, python
from trainhub.up.separation import accounts
from trainhub.up.valkey import Valkey
from trainhub_launch.machine import BY_HUB

# Stages of the stop. Worker and agent stop first, while the web server can still receive their last reports;
# Valkey stops last.
VALKEY_STAGE, WEB_STAGE, WORKING_STAGE = range(3)
WORKER_THREADS = 4
# Beside the file of the keys for secrets.
LOGIN_KEYS = "login-nodes"


def valkey_child(valkey: Valkey, lock: int) -> Child:
    return Child("valkey", "embedded Valkey", valkey.argv, VALKEY_STAGE, pass_fds=(lock,))


def gateway_child(
    valkey: Valkey, bind: installation.Bind, certificate: installation.Certificate, lock: int
) -> Child:
    """The broker gateway, through which other machines reach Valkey by TLS."""
    where = (bind.host, str(bind.port), str(valkey.socket), str(certificate.chain), str(certificate.key))
    return Child(
        "gateway", "broker gateway", python("-m", "trainhub.gateway", *where), WEB_STAGE, pass_fds=(lock,)
    )


def children(node: str) -> list[Child]:
    """The worker and this machine's agent, in the order of their start. `node`: "" for no agent."""
    if not node:
        return [worker()]
    certificate = installation.certificate()
    return [
        worker(),
        agent(node, certificate.ca if certificate is not None else None, installation.NODE_TOKEN_FILE),
    ]


def web(lock: int, gate: int) -> Child:
    """The web server. It loads its code at once, and serves as soon as the other end of the pipe `gate` is
    closed."""
    settings = {START_GATE: str(gate)}
    return Child(
        "web", "web server", python("-m", "trainhub.serving"), WEB_STAGE, env=settings, pass_fds=(lock, gate)
    )


def worker() -> Child:
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
    # The system checks would load the code of every page, which the worker does not need and the web server
    # has loaded already.
    return Child("worker", "worker", argv, WORKING_STAGE, env={"CELERY_SKIP_CHECKS": "1"})


def agent(node: str, authority: Path | None, token_file: Path, *, hub_account: str = "") -> Child:
    """This machine's agent. `authority`: the certificate of the authority that has issued the hub's; None =
    the system's authorities are used. `hub_account`: the hub's, if it has one of its own."""
    settings = {
        "TRAINHUB_HUB_URL": installation.agent_url(),
        "TRAINHUB_HUB_CA": "" if authority is None else str(authority),
        "TRAINHUB_NODE_NAME": node,
        "TRAINHUB_NODE_TOKEN_FILE": str(token_file),
        "TRAINHUB_NODE_DIR": str(installation.NODE_DIR),
        "TRAINHUB_NODE_RUN_AS": installation.RUN_AS,
        # It is part of the hub's installation, and gets its new version with the hub.
        "TRAINHUB_NODE_UPGRADES": BY_HUB,
        # Where runs have namespaces of their own, they see nothing of the hub's data.
        "TRAINHUB_NODE_HIDE": _with_operators("TRAINHUB_NODE_HIDE", _hub_paths()),
        "TRAINHUB_NODE_REFUSED_ACCOUNTS": _with_operators(
            "TRAINHUB_NODE_REFUSED_ACCOUNTS", [hub_account] if hub_account else []
        ),
    }
    if installation.is_open():
        # Other nodes have to reach this one, too, so it must not report the loopback, at which it reaches the
        # hub.
        settings["TRAINHUB_NODE_ADDRESS"] = (
            os.environ.get("TRAINHUB_NODE_ADDRESS") or installation.outer_address()
        )
    return Child("agent", "node agent", python("-m", "trainhub_node", "run"), WORKING_STAGE, env=settings)


def _hub_paths() -> list[str]:
    """Returns the folder and the files with secrets of the hub, which an agent of the same account could
    read."""
    files = [env.text(f"{name}_FILE", "") for name in accounts.SECRETS] + [env.text("TLS_KEY_FILE", "")]
    paths = [installation.DATA_DIR, *_keys(), *map(Path, filter(None, files))]
    return [str(path.absolute()) for path in paths]


def _keys() -> list[Path]:
    """Returns the places of the keys for secrets and for login nodes. Their folder is made now: a run sees
    what is made only after its start."""
    file = secrets_keyring(installation.DATA_DIR)
    is_given = bool(env.text("SECRETS_KEYRING", ""))
    own = file.parent / LOGIN_KEYS if is_given else file.parent
    # Where it cannot be made, there are no keys either, and the pages that need them say so.
    with suppress(OSError):
        # Not in a folder of the hub's own account, which makes it itself.
        if not is_given or file.parent.stat().st_uid == os.geteuid():
            own.mkdir(mode=0o700, exist_ok=True)
    return [file, own] if is_given else [own]


def _with_operators(name: str, values: list[str]) -> str:
    """Returns the values for a list of the agent, after those that the operator has set."""
    return ":".join([*filter(None, [os.environ.get(name, "")]), *values])
