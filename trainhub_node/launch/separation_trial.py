"""What of the separation of runs works on this machine, found by a trial when the agent starts."""

from __future__ import annotations

import logging
import os
import subprocess
import tempfile
from dataclasses import replace

from trainhub_launch.machine import (
    BUILDS,
    CGROUP,
    CHANGED_DATA,
    CHECKPOINT_STORES,
    CONDA,
    DATASETS,
    DISK,
    DOWNLOADS,
    HUB_CONDA,
    HUB_DATA,
    HUB_INDEX,
    INPUTS,
    NAMESPACES,
    NETWORK,
    OUTPUT_STORES,
    OWN_ACCOUNTS,
    PEERS,
    PROBE,
    REFERENCES,
    SECRETS,
    WHEEL_BUILDS,
)
from trainhub_launch.scheduler.capabilities import GLIBC
from trainhub_node.bootstrap_command import AGENT_WRAPPER
from trainhub_node.data.node_cache import find_obstore
from trainhub_node.isolation import landlock, network_rules
from trainhub_node.isolation.cgroup_place import find_place
from trainhub_node.launch.conda_support import find_rattler
from trainhub_node.launch.uv_support import usable_uv
from trainhub_node.machine.host import memory_total
from trainhub_node.run_account import Account
from trainhub_node.settings import NodeSettings
from trainhub_node.untrusted import removal
from trainhub_node.upgrade.installation import upgrade_capability

log = logging.getLogger(__name__)
TIMEOUT_S = 30
MAX_DESCRIPTION = 1000
PREFIX = ".trial-"
# The beginning of a failure -> its remedy, for an agent that is not root.
REMEDIES = {
    "unshare": (
        "let accounts make user namespaces (sysctl user.max_user_namespaces above 0, and "
        "kernel.unprivileged_userns_clone=1 where it exists; in a container a seccomp profile that allows "
        "unshare, setns and mount)"
    ),
    "mount /proc": (
        "let the container see the whole /proc (Docker: --security-opt systempaths=unconfined; Kubernetes: "
        "procMount: Unmasked)"
    ),
}
REMEDY = (
    "allow capabilities in user namespaces of accounts (Ubuntu: sysctl "
    "kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile for the agent's Python)"
)


def with_separation(settings: NodeSettings) -> NodeSettings:
    """Returns the settings, completed by whether runs get namespaces of their own here. Runs that are root
    get none: they could leave them."""
    agent = f"{settings.name} {settings.folder}"
    if not settings.has_outer_limits:
        # Whoever limits the agent counts what its processes use, and removes their groups after them.
        settings = replace(settings, cgroup=find_place(agent, memory_total()))
    account = settings.run_as
    if account is None and os.geteuid() == 0:
        return settings
    # Outside of runs a person's account can connect as it likes.
    if account is not None and not settings.is_per_person:
        settings = _with_network(settings, account, agent)
    if not settings.allows_namespaces:
        return replace(settings, separation_trouble="TRAINHUB_NODE_NAMESPACES=off")
    reason = _with_remedy(_trial(settings, os.geteuid() if account is None else account.uid))
    if reason:
        log.warning("Runs have no namespaces of their own on this machine: %s", reason)
    return replace(settings, has_namespaces=not reason, separation_trouble=reason)


def _with_network(settings: NodeSettings, account: Account, agent: str) -> NodeSettings:
    accounts = settings.uids or range(account.uid, account.uid + 1)
    try:
        table = network_rules.find_table(agent, accounts, refuses_metadata=not settings.allows_metadata)
    except network_rules.RulesError as error:
        log.warning("Connections of runs are not limited on this machine: %s", error)
        return replace(settings, network_trouble=str(error))
    return replace(settings, network=table)


def _with_remedy(reason: str) -> str:
    """Returns why namespaces cannot be made by an agent that is not root, and how they can."""
    if not reason or os.geteuid() == 0:
        return reason
    remedy = next((remedy for beginning, remedy in REMEDIES.items() if reason.startswith(beginning)), REMEDY)
    return f"{reason}; {remedy}, or run the agent as root"


def _trial(settings: NodeSettings, uid: int) -> str:
    for left in settings.folder.glob(f"{PREFIX}*"):
        removal.remove_tree(str(left))  # an agent was killed during its trial
    folder = tempfile.mkdtemp(prefix=PREFIX, dir=settings.folder)
    os.chmod(folder, 0o711)  # noqa: S103 - the account of the trial passes through
    try:
        done = subprocess.run(
            [*AGENT_WRAPPER, "trial", folder, str(uid)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            cwd="/",
            env={},
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"a trial did not end within {TIMEOUT_S} s"
    finally:
        removal.remove_tree(folder)
    lines = (done.stdout or done.stderr).strip().splitlines()
    if done.returncode:
        return lines[-1] if lines else f"a trial ended with code {done.returncode}"
    return lines[-1] if lines else ""


def capabilities(settings: NodeSettings) -> tuple[str, ...]:
    """Returns what this agent newly can, as heartbeats name it."""
    has_limits = settings.has_outer_limits or (settings.cgroup is not None and settings.cgroup.is_complete)
    has_obstore = bool(find_obstore())
    known = (
        (OWN_ACCOUNTS, settings.uids is not None),
        (NAMESPACES, settings.has_namespaces),
        (CGROUP, has_limits),
        # Every agent of this version.
        (SECRETS, True),
        (DISK, True),
        (HUB_INDEX, True),
        (BUILDS, True),
        (HUB_CONDA, True),
        (INPUTS, True),
        (NETWORK, settings.network is not None),
        (CONDA, bool(find_rattler())),
        (DOWNLOADS, has_obstore),
        (OUTPUT_STORES, has_obstore),
        (CHECKPOINT_STORES, has_obstore),
        (DATASETS, has_obstore),
        (PROBE, True),
        (HUB_DATA, has_obstore),
        (PEERS, has_obstore and settings.peer_port is not None),
        (REFERENCES, has_obstore),
        (CHANGED_DATA, True),
        (WHEEL_BUILDS, bool(usable_uv(settings))),
    )
    return (*(name for name, can in known if can), upgrade_capability(settings.upgrades), *_glibc())


def _glibc() -> tuple[str, ...]:
    """Returns the version of glibc as a capability; nothing on a machine with another C library."""
    try:
        name, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
    except (ValueError, OSError):
        return ()
    return (f"{GLIBC}{version}",) if name == "glibc" and version else ()


def description(settings: NodeSettings) -> str:
    """Returns what keeps runs of this node apart, and what does not, in sentences for its page."""
    if settings.run_as is None:
        apart = "All runs have the agent's own account"
        apart += (
            ", but see no files and processes of others."
            if settings.has_namespaces
            else ": each can read and end the others."
        )
    elif settings.uids is not None:
        apart = "Each run has an account of its own"
        apart += ", and sees no files and processes of others." if settings.has_namespaces else "."
    elif settings.is_per_person:
        apart = "Each run has the account of the person who submitted it"
        apart += ", and sees no files and processes of other runs." if settings.has_namespaces else "."
    else:
        apart = f"All runs have the account {settings.run_as.name}"
        apart += ", but see no files and processes of others." if settings.has_namespaces else "."
    trouble = [f"No namespaces here: {settings.separation_trouble}."] if settings.separation_trouble else []
    if settings.cgroup is not None and settings.cgroup.missing:
        trouble.append(f"Not all limits work here: {'; '.join(settings.cgroup.missing)}.")
    if settings.network_trouble:
        what = "Runs can reach ports of others and the cloud's metadata"
        trouble.append(f"{what}: {settings.network_trouble}.")
    if (settings.run_as is not None or settings.has_namespaces) and not landlock.has_scopes():
        trouble.append("Runs can reach abstract sockets of others: that needs Linux 6.12 with Landlock.")
    return " ".join([apart, *trouble])[:MAX_DESCRIPTION]
