"""The terms of an attempt (`terms.json`): what its child needs to know of this node."""

from __future__ import annotations

import dataclasses
import os
import pwd

from trainhub_launch.order import IMAGE, MAKE, NodeOrder, OrderKind
from trainhub_node.containers import discovery
from trainhub_node.data.node_cache import data_terms
from trainhub_node.data.shares.share_keeper import shares_folder
from trainhub_node.launch import wrapper
from trainhub_node.launch.conda_support import find_rattler
from trainhub_node.launch.person_accounts import person_account
from trainhub_node.launch.uv_support import usable_uv
from trainhub_node.run_account import Account
from trainhub_node.rundir import RunDir
from trainhub_node.settings import NodeSettings

# Sockets of the account's other sessions, by which a run could have programs started outside of its
# namespaces: systemd's and D-Bus's, and those of terminals.
SESSIONS = ("/run/user", "/run/screen")
# Of the agent's account: keys, and the images and containers of podman.
HOME_FOLDERS = (".ssh", ".local/share/containers")
PIP_PREFIX = "PIP_"
PIP_NAMES = (
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "all_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
)


def build(settings: NodeSettings, order: NodeOrder, account: Account | None) -> dict[str, object]:
    """Returns the terms, with which the child needs neither settings nor the agent. `account`: that of the
    attempt, None for the agent's own.

    Agents and children of other versions read this file: its keys never change."""
    # pip's settings and the proxies are the node's, not the run's: they say how this machine reaches an
    # index.
    pip = {
        name: value for name, value in os.environ.items() if name.startswith(PIP_PREFIX) or name in PIP_NAMES
    }
    needs_engine = order.environment.kind in (IMAGE, MAKE)
    engine = discovery.find_engine(settings) if needs_engine else None
    return {
        "node": settings.name,
        "hub": settings.hub_url,
        "python": settings.python,
        "sites": str(settings.sites),
        "environments": str(settings.environments),
        "packages": str(settings.packages),
        "image_builds": str(settings.image_builds),
        "uv": usable_uv(settings),
        "digest": order.environment.digest,
        "pip": pip,
        "account": dataclasses.asdict(account) if account else None,
        "isolation": _isolation(settings, account),
        "hidden": _hidden(settings, account),
        "cgroup": settings.cgroup.to_terms() if settings.cgroup is not None else None,
        "outer_limits": settings.has_outer_limits,
        "wrapper": wrapper.wrapper_argv(settings),
        "engine": engine.to_terms() if engine is not None else None,
        "rattler": find_rattler(),
        "data": data_terms(settings),
        "shares": shares_folder(settings),
        "nfs_servers": list(settings.nfs_servers),
        "ca": str(settings.rank_ca) if settings.hub_ca else "",
    }


def attempt_account(
    settings: NodeSettings, folder: RunDir, number: int | None, order: NodeOrder
) -> Account | None:
    """Returns the account of an attempt. `number`: its own, if this node gives each attempt one. Raises
    NoAccount."""
    if settings.is_per_person:
        # A build runs nothing under the account of a person, who need not have one here.
        return settings.run_as if order.kind == OrderKind.BUILD else person_account(settings, order.person)
    if number is None:
        return settings.run_as
    return Account(name=f"run{number}", uid=number, gid=number, home=folder.home)


def _homes() -> set[str]:
    """Returns the homes of the agent's account: the one in its environment, and the one that ssh uses."""
    homes = {os.path.expanduser("~")}
    try:
        homes.add(pwd.getpwuid(os.geteuid()).pw_dir)
    except KeyError:
        return homes  # an account by number only, as in containers
    return homes


def _hidden(settings: NodeSettings, account: Account | None) -> list[str]:
    """Returns the folders and files of which a run sees nothing where it has namespaces, and which are
    nowhere inputs of one."""
    hidden = [str(settings.folder), str(settings.cache), *settings.hidden, *SESSIONS]
    if account is None:
        # Runs have the agent's own account. Its keys may open this very machine.
        hidden += [f"{home}/{folder}" for home in _homes() for folder in HOME_FOLDERS]
    return hidden


def _isolation(settings: NodeSettings, account: Account | None) -> dict[str, object] | None:
    """Returns what a child needs to build the namespaces of its attempt; None if it has none, nor an account
    of its own."""
    if account is None and not settings.has_namespaces:
        return None
    visible = [settings.sites, settings.environments, settings.folder / "wrapper"]
    if account is None:
        # mpirun starts the wrapper from where the agent is installed.
        visible += wrapper.PACKAGES
    return {
        "namespaces": settings.has_namespaces,
        "hidden": _hidden(settings, account),
        "visible": [str(path) for path in visible],
        "shared": list(settings.shared),
        "own_account": settings.uids is not None,
        "agent_account": account is None,
    }
