"""The account under which the hub runs, and checks that this account cannot become root."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from pathlib import Path

from trainhub import env, installation
from trainhub.up import preflight
from trainhub.up.console import Stop, say

DEFAULT_NAME = "trainhub"
USERADD = f"useradd --system --user-group --no-create-home --shell /usr/sbin/nologin {DEFAULT_NAME}"
CONSENT = (
    "RUN_AS=root runs everything as root instead: whoever may submit is then trusted with this machine "
    "(docs/isolation.md)."
)
# Settings that may stand in a file that root alone can read.
SECRETS = (
    "SECRET_KEY",
    "DATABASE_URL",
    "REDIS_URL",
    "BROKER_URL",
    "RABBITMQ_API_URL",
    "EMAIL_URL",
    "WEBHOOK_PROXY",
    "OIDC_CLIENT_SECRET",
    "BLOB_STORE_KEY_ID",
    "BLOB_STORE_SECRET",
    "SHIP_LOGS_HEADERS",
)
# Beginnings of the names of variables that concern root or its agent.
ROOTS_OWN = ("RUN_AS", "HUB_AS", "TMPDIR", "MAIL", "XDG_", "SUDO_", "TRAINHUB_NODE_")
Account = pwd.struct_passwd


def is_separated() -> bool:
    """Returns whether `up` has to start the hub under an account of its own."""
    return os.geteuid() == 0 and bool(installation.RUN_AS)


def hub_account() -> Account:
    """Returns the account that HUB_AS names, or `trainhub`. Raises Stop with a remedy if it cannot be
    used."""
    name = installation.HUB_AS or DEFAULT_NAME
    try:
        account = pwd.getpwnam(name)
    except KeyError as error:
        if installation.HUB_AS:
            raise Stop(
                f"HUB_AS={name} does not exist on this machine. Create it, or choose another."
            ) from error
        account = _create_account()
    if account.pw_uid == 0:
        raise Stop(f"HUB_AS={name} is root, as which the hub must not run. Choose an account without rights.")
    if account.pw_uid == preflight.runs_account().pw_uid:
        raise Stop(
            f"HUB_AS and RUN_AS are both {name}, so runs could read the hub's files. Name different accounts."
        )
    _check_that_root_trusts_neither(account)
    return account


def _create_account() -> Account:
    """Creates the account `trainhub`, as whoever installs TrainHub would. Raises Stop if that fails, or would
    be of no use."""
    check_passable(preflight.account_without_rights(DEFAULT_NAME))
    program, *arguments = USERADD.split()
    try:
        done = subprocess.run(
            [program, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        trouble = done.stderr.strip() if done.returncode else ""
    except OSError as error:
        trouble = error.strerror or str(error)
    if trouble:
        raise Stop(
            f"The hub needs an account of its own, which could not be created ({trouble}). Create one "
            f"(`{USERADD}`), or name one in HUB_AS. {CONSENT}"
        )
    say(f"Created the account {DEFAULT_NAME} for the hub ({USERADD}).")
    return pwd.getpwnam(DEFAULT_NAME)


def check_passable(account: Account) -> None:
    """Raises Stop if the account cannot reach the program, its interpreter or the data."""
    for folder in (installation.BASE_DIR, Path(sys.base_prefix), Path(sys.prefix), installation.DATA_DIR):
        blocked = preflight.not_passable(folder, account)
        if blocked:
            remedy = f"Move {folder} elsewhere, or open {blocked} to that account."
            if folder == Path(sys.base_prefix):
                remedy = (
                    f"{folder} has the interpreter of this installation. Take one that every account may "
                    "execute (Debian and Ubuntu: apt install python3-venv; then remove .venv and start "
                    f"again), or open {blocked} to that account."
                )
            raise Stop(
                f"The hub's account {account.pw_name} cannot pass through {blocked}. {remedy} {CONSENT}"
            )


def environment(account_name: str, data: Path) -> dict[str, str]:
    """Returns the environment for processes of the hub's account, with the secrets in files that only root
    may read."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith(ROOTS_OWN)}
    for name in SECRETS:
        if variables.pop(f"{name}_FILE", ""):
            variables[name] = env.secret(name)
    hub = str(data / "hub")
    who = {"HOME": hub, "USER": account_name, "LOGNAME": account_name}
    return {**variables, **who, "DATA_DIR": hub, "NODE_DIR": str(_node_dir(data))}


def _node_dir(data: Path) -> Path:
    return env.folder("NODE_DIR", data / "node")


def _check_that_root_trusts_neither(hub: Account) -> None:
    """Raises Stop if the hub's account or that of runs owns a folder from which root runs programs, or in
    which root's agent works."""
    owners = {account.pw_uid: account.pw_name for account in (hub, preflight.runs_account())}
    programs = (
        installation.BASE_DIR,
        installation.BASE_DIR / "trainhub",
        installation.BASE_DIR / "trainhub_node",
        Path(sys.prefix).resolve(),
    )
    for folder in {step for program in programs for step in (program, *program.parents)}:
        owner = owners.get(folder.stat().st_uid)
        if owner:
            raise Stop(
                f"{folder} belongs to {owner}, but root runs programs from there. Give it to root: chown -R "
                f"root {folder}"
            )
    cache = os.environ.get("TRAINHUB_NODE_CACHE", "")  # the agent's setting
    for name, place in (
        ("NODE_DIR", installation.NODE_DIR),
        *([("TRAINHUB_NODE_CACHE", Path(cache).absolute())] if cache else []),
    ):
        for folder in (place, *place.parents):
            owner = owners.get(folder.stat().st_uid) if folder.exists() else None
            if owner:
                raise Stop(
                    f"{folder} belongs to {owner}, but root's agent works there. Set {name} to a folder "
                    "of root's."
                )
