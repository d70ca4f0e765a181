"""What lies in DATA_DIR: what a backup takes, what are keys, and what a hub makes anew by itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from trainhub import installation
from trainhub.backup import database_copy
from workspaces.servers import data_folder
from workspaces.stored_files import deletions

# Copied before the database: it must not know of later events than the database has.
AUDIT_HEADS = "audit-heads.log"
# Folders of files, copied after the database, which names them.
FOLDERS = ("keys/public", "runs")
BLOBS = "blobs"
EXCLUDED = {
    "servers": "logs, process ids and locks of each of several servers",
    data_folder.FILE: "the mark by which a database knows this folder; a start makes a new one",
    "run": "sockets, process ids and locks",
    "tmp": "temporary files",
    "valkey": "the queue of the embedded Valkey, whose messages are repeated",
    "logs": "logs of the hub's own processes",
    "uploads": "unfinished uploads, which their senders begin again",
    "wheels": "packages for nodes, made at the start",
    "sdk-wheels": "packages of the command line, made at the start",
    "node-programs": "the node program for jobs of Slurm, made when one is submitted",
    "node": "runs and environments of this machine's node",
    "node-token": "the token of this machine's node; a start makes a new one",
    "hub-ca.pem": "a copy of the authority's certificate for this machine's agent",
    "tls-given": "copies of TLS_CERT_FILE and TLS_KEY_FILE",
    "machines": "simulated machines of the demo",
    "scenarios": "simulated machines of the demo",
    "simulator": "simulated machines of the demo",
    "demo.json": "facts of the demo",
    "demo-password": "the password of the demo",
    "sign-in-link": "a link of the demo",
    "remove": "a request to remove the demo",
    deletions.GATE: "a lock",
    deletions.WORK: "a lock",
    installation.RESTORE_MARK.name: "the mark of a restoration",
    installation.MOVE_MARK.name: "the mark of a database that was moved to PostgreSQL",
    **{
        f"trainhub.sqlite3{suffix}": "the database of before it was moved to PostgreSQL"
        for suffix in ("", "-wal", "-shm")
    },
}
_KEY_NAMES = ("secret-key", "keys", "tls")


@dataclass(frozen=True)
class KeyFile:
    """A file that a backup writes to the folder of keys only. `name`: there. `loss`: what its absence means
    after a restoration, and what to do then."""

    name: str
    path: Path
    loss: str


def data_dir() -> Path:
    return Path(settings.DATA_DIR)


def key_files() -> tuple[KeyFile, ...]:
    data = data_dir()
    authority = (
        "Machines that joined with the hub's own certificate authority do not know the new one that the next "
        "start makes: join them again."
    )
    return (
        KeyFile(
            "secrets-keyring",
            Path(settings.SECRETS_KEYRING),
            f"No stored secret can be read. Put the keys into {settings.SECRETS_KEYRING}; if they are lost, "
            "run `manage.py secrets new-keyring` and store the secrets again.",
        ),
        KeyFile(
            "secret-key",
            data / "secret-key",
            "A new key is made at the start: everybody signs in again, second factors have to be set up anew "
            "(`manage.py person reset-factors NAME`), and runs that are active lose their tokens.",
        ),
        KeyFile(
            "model-signing.pem",
            data / "keys" / "model-signing.pem",
            "Models that are registered from now on are signed with a new key. Certificates made before stay "
            "valid: the public keys are in the backup.",
        ),
        KeyFile("ca-key.pem", data / "tls" / "ca-key.pem", authority),
        KeyFile("ca.pem", data / "tls" / "ca.pem", authority),
    )


def key_paths() -> set[str]:
    """Returns the files that must not come into the folder of a backup, wherever settings have put them."""
    return {str(key.path) for key in key_files()}


def excluded() -> dict[str, str]:
    """Returns the names in DATA_DIR that a backup does not take, with the reason. A name that this version
    does not know is left out, too: it may be a key."""
    reasons = {}
    for path in sorted(data_dir().iterdir()):
        if not _is_copied(path):
            reasons[path.name] = EXCLUDED.get(path.name, "unknown to this version of TrainHub")
    if Path(settings.AUDIT_HEADS) != data_dir() / AUDIT_HEADS:
        reasons[AUDIT_HEADS] = f"AUDIT_HEADS={settings.AUDIT_HEADS} lies elsewhere on purpose"
    return reasons


def unknown_names() -> list[str]:
    return [path.name for path in data_dir().iterdir() if not _is_copied(path) and path.name not in EXCLUDED]


def hub_content() -> Iterator[str]:
    """Yields the names in DATA_DIR that show that a hub has worked here. Keys and what every start makes do
    not count."""
    for name in (AUDIT_HEADS, *FOLDERS):
        path = data_dir() / name
        if (path.is_dir() and any(path.iterdir())) or path.is_file():
            yield name


def _is_copied(path: Path) -> bool:
    names = {AUDIT_HEADS, BLOBS, *_KEY_NAMES, *(folder.partition("/")[0] for folder in FOLDERS)}
    keyring = Path(settings.SECRETS_KEYRING)
    return path.name in names or path in (keyring, *keyring.parents) or path in database_copy.sqlite_files()
