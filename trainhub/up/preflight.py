"""Checks before anything is started. Each refusal is one sentence."""

from __future__ import annotations

import errno
import fcntl
import os
import pwd
import secrets
import socket
import ssl
import sys
import time
from pathlib import Path

from trainhub import addresses, env, files, installation
from trainhub.files import write_secret
from trainhub.serving import proxies
from trainhub.serving.link_address import link_bind
from trainhub.up.console import Stop

# How long the children of a killed `up` may need to end before the next one starts.
TAKEOVER_S = 15
# The highest account number that Linux programs can handle without exception.
NOBODYS_UID = 2**31 - 2


def prepare_folders() -> None:
    """Makes the data folder, private to this account. With RUN_AS other accounts may pass through it, but not
    list it. Raises Stop if it cannot be used."""
    os.umask(0o077)
    data = installation.DATA_DIR
    try:
        for folder in (
            data,
            data / "run",
            installation.OWN_DIR / "run",
            data / "tmp",
            data / "valkey",
            installation.LOGS,
            installation.NODE_DIR,
            installation.TLS_DIR,
        ):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        data.chmod(0o711 if installation.RUN_AS else 0o700)
        for path in data.iterdir():
            if path != installation.NODE_DIR and not path.is_symlink():
                path.chmod(0o700 if path.is_dir() else 0o600)
        probe = data / "run" / ".writable"
        probe.write_text("")
        probe.unlink()
    except OSError as error:
        why = error.strerror or error
        raise Stop(
            f"The data folder {data} cannot be used: {why}. Set DATA_DIR to a writable folder."
        ) from error


def lock() -> int:
    """Locks the data folder for this `up` and the children that inherit the returned descriptor. Raises Stop
    if another TrainHub uses it."""
    path = installation.OWN_DIR / "run" / "up.lock"
    # The children inherit the descriptor, and a flock lasts until every copy of it is closed, so it also
    # shows services that outlived a killed `up`.
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    deadline = time.monotonic() + TAKEOVER_S
    while not _locked(descriptor):
        # The holder's process id only serves the message; the lock itself is the flock.
        holder = os.pread(descriptor, 32, 0).decode().strip()
        if holder.isdigit() and _lives(int(holder)):
            remedy = "Stop that one, or set DATA_DIR to another folder."
            raise Stop(f"TrainHub already runs on {installation.DATA_DIR} (process {holder}). {remedy}")
        if time.monotonic() > deadline:
            raise Stop(
                f"Services of an earlier TrainHub on {installation.DATA_DIR} have not ended yet. Try again "
                "in a moment."
            )
        time.sleep(0.1)
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, str(os.getpid()).encode(), 0)
    return descriptor


def check_restored() -> None:
    """Raises Stop if a restoration into the data folder was interrupted."""
    mark = installation.RESTORE_MARK
    if mark.exists():
        raise Stop(
            f"The restoration of {mark.read_text()} into {installation.DATA_DIR} was not completed. "
            "Run `manage.py restore` again, or remove that folder."
        )


def check_moved() -> None:
    """Raises Stop if the database was moved to PostgreSQL and this start would use the old one again."""
    mark = installation.MOVE_MARK
    if mark.exists() and not env.secret("DATABASE_URL"):
        raise Stop(
            f"The database of this hub was moved to {mark.read_text()}. Set DATABASE_URL to it. To go back "
            f"to what the hub was before, remove {mark}."
        )


def check_ports() -> None:
    """Raises Stop if the hub's port cannot be used, or that of the broker, if TrainHub itself provides the
    broker."""
    check_port("BIND", installation.bind())
    link = link_bind()
    if link is not None:
        check_port("SERVER_ADDRESS", link)
    broker = installation.broker_bind()
    if broker is not None and not installation.configured_redis_url():
        check_port("BROKER_BIND", broker)


def check_port(name: str, bind: installation.Bind) -> None:
    host, port = bind
    address = f"{addresses.bracketed(host)}:{port}"
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        # Otherwise connections of an earlier server that are still in TIME_WAIT would block the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                remedy = (
                    f"Stop what listens there, or set {name}, for example "
                    f"{name}={addresses.bracketed(host)}:{port + 2}."
                )
                raise Stop(f"Port {port} on {host} is in use. {remedy}") from error
            remedy = (
                f" Only root may use ports below 1024: set {name} to another port."
                if error.errno == errno.EACCES
                else ""
            )
            raise Stop(f"{name}={address} cannot be used: {error.strerror}.{remedy}") from error


def check_certificate() -> None:
    """Raises Stop if the operator's own certificate cannot be used. The hub's own is made by `manage.py
    prepare`."""
    certificate = installation.certificate()
    if certificate is None or certificate.ca is not None:
        return
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(
            certificate.chain, certificate.key, password=""
        )
    except OSError as error:
        why = (
            "they are no certificate with its key in PEM"
            if isinstance(error, ssl.SSLError)
            else error.strerror
        )
        raise Stop(
            f"TLS_CERT_FILE={certificate.chain} with TLS_KEY_FILE={certificate.key} cannot be used: {why}."
        ) from error


def make_secret_key() -> None:
    if not installation.SECRET_KEY_FILE.exists():
        write_secret(installation.SECRET_KEY_FILE, secrets.token_urlsafe(48))


def has_local_node() -> bool:
    """Returns whether this machine takes runs, too (LOCAL_NODE)."""
    return env.boolean("LOCAL_NODE", True)


def account_notice(*, as_demo: bool = False) -> str:
    """Returns a sentence about the account under which runs execute. Raises Stop if RUN_AS cannot work."""
    root = os.geteuid() == 0
    if not as_demo and not has_local_node():
        return "This machine takes no runs (LOCAL_NODE=0)."
    if not installation.RUN_AS:
        if root:
            remedy = (
                "a demo does not separate them" if as_demo else "start without RUN_AS=root to separate them"
            )
            return (
                f"Runs execute as root: whoever may submit is trusted with this account ({remedy}; see "
                "THREAT_MODEL.md)."
            )
        if as_demo:
            return "Runs execute under this account: a demo does not separate them (docs/demo.md)."
        return (
            f"Runs execute as {pwd.getpwuid(os.geteuid()).pw_name}, apart from each other if this kernel "
            "lets accounts make namespaces; the page of this machine's node says whether. If not, whoever "
            "may submit is trusted with this account (docs/isolation.md)."
        )
    if not root:
        raise Stop(
            f"RUN_AS={installation.RUN_AS} needs TrainHub to be started as root. Start it as root, or "
            "unset RUN_AS."
        )
    account = runs_account()
    for folder in (installation.BASE_DIR, Path(sys.base_prefix), installation.NODE_DIR):
        blocked = not_passable(folder, account)
        if blocked:
            remedy = f"Move {folder} elsewhere, or open {blocked} to every account."
            raise Stop(
                f"RUN_AS={installation.RUN_AS} cannot pass through {blocked}, which runs must. {remedy}"
            )
    if installation.RUN_AS == installation.RANGE:
        return "Each run executes under an account of its own (docs/isolation.md)."
    if installation.RUN_AS == installation.PERSON:
        return "Each run executes under the account of the person who submitted it (docs/isolation.md)."
    return f"Runs execute as {installation.RUN_AS}."


def runs_account() -> pwd.struct_passwd:
    """Returns the account of runs. With RUN_AS=range and RUN_AS=person this is one to which nothing belongs,
    like those that runs may get. Raises Stop if there is none of that name."""
    name = installation.RUN_AS
    if name in (installation.RANGE, installation.PERSON):
        return account_without_rights(name)
    try:
        return pwd.getpwnam(name)
    except KeyError as error:
        raise Stop(
            f"RUN_AS={name} is not an account of this machine. Create it, or choose another."
        ) from error


def account_without_rights(name: str) -> pwd.struct_passwd:
    """Returns the facts of an account that need not exist, to which nothing belongs."""
    return pwd.struct_passwd((name, "x", NOBODYS_UID, NOBODYS_UID, "", "/", "/bin/sh"))


def package_notice() -> str:
    """Returns which command an installed hub has, or "" in a checkout."""
    if not files.is_installed():
        return ""
    return "\nThe commands `manage.py` and `make up` of texts are `trainhub-hub` and `trainhub-hub up` here."


def proxy_notice() -> str:
    """Returns a hint for an operator who uses a proxy for TLS without naming it, or "". Raises EnvError if
    TRUSTED_PROXIES is wrong."""
    if proxies.trusted_proxies() or not installation.is_open() or installation.certificate() is not None:
        return ""
    return (
        "\nNo proxy is named in TRUSTED_PROXIES, so everybody behind yours counts as one address "
        "(docs/configuration.md)."
    )


def not_passable(folder: Path, account: pwd.struct_passwd) -> Path | None:
    """Returns the first folder on the way to `folder`, itself included, that the account may not pass
    through; None if there is none."""
    groups = os.getgrouplist(account.pw_name, account.pw_gid)
    for step in [*reversed(folder.parents), folder]:
        if step in (installation.NODE_DIR, installation.DATA_DIR) or not step.exists():
            continue  # `up` and the agent make and open these themselves
        facts = step.stat()
        # As the kernel does: only the first class that matches counts, even if a later one would permit more.
        bit = 0o100 if facts.st_uid == account.pw_uid else 0o010 if facts.st_gid in groups else 0o001
        if not facts.st_mode & bit:
            return step
    return None


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        # The process exists, but belongs to another account.
        return True
    return True
