"""The settings of a node as files in its folder: node.json and the hub's certificate. `join` writes them, and
`run` reads them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from trainhub_node.durable_files import write_durably
from trainhub_node.settings import SettingsError

FILE = "node.json"
HUB_CA = "hub-ca.pem"
# Names in node.json -> the environment variable of that setting, which has priority.
NAMES = {
    "hub_url": "TRAINHUB_HUB_URL",
    "token": "TRAINHUB_NODE_TOKEN",
    "name": "TRAINHUB_NODE_NAME",
    "address": "TRAINHUB_NODE_ADDRESS",
    "interface": "TRAINHUB_NODE_INTERFACE",
    "run_as": "TRAINHUB_NODE_RUN_AS",
    "uids": "TRAINHUB_NODE_UIDS",
    "hide": "TRAINHUB_NODE_HIDE",
    "shared": "TRAINHUB_NODE_SHARED",
    "metadata": "TRAINHUB_NODE_METADATA",
    "nfs_servers": "TRAINHUB_NODE_NFS_SERVERS",
    "namespaces": "TRAINHUB_NODE_NAMESPACES",
    "people": "TRAINHUB_NODE_PEOPLE",
    "refused_accounts": "TRAINHUB_NODE_REFUSED_ACCOUNTS",
    "slots": "TRAINHUB_NODE_SLOTS",
    "cache": "TRAINHUB_NODE_CACHE",
    "cache_bytes": "TRAINHUB_NODE_CACHE_BYTES",
    "python": "TRAINHUB_NODE_PYTHON",
    "upgrades": "TRAINHUB_NODE_UPGRADES",
}


def default_folder() -> Path:
    return (
        Path("/var/lib/trainhub-node")
        if os.geteuid() == 0
        else Path.home() / ".local" / "share" / "trainhub-node"
    )


def folder(option: str, env: Mapping[str, str]) -> Path:
    return Path(option or env.get("TRAINHUB_NODE_DIR", "") or default_folder()).absolute()


def environment(folder: Path, env: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables `env`, completed by the settings that the folder stores. Raises SettingsError."""
    stored = {NAMES[name]: value for name, value in read(folder).items() if name in NAMES}
    if env.get("TRAINHUB_NODE_TOKEN_FILE"):
        # `settings.read` prefers a token to a file with one, but the environment has priority over node.json.
        stored.pop("TRAINHUB_NODE_TOKEN", None)
    if (folder / HUB_CA).exists():
        stored["TRAINHUB_HUB_CA"] = str(folder / HUB_CA)
    variables = {name: value for name, value in env.items() if value}
    if "TRAINHUB_HUB_URL" not in stored | variables:
        raise SettingsError(
            f"this machine is no node yet: there is no {folder / FILE}, and TRAINHUB_HUB_URL is not set; run "
            "`trainhub-node join URL --token …` first, with what `manage.py node token NAME` prints "
            "on the hub"
        )
    return {**stored, **variables, "TRAINHUB_NODE_DIR": str(folder)}


def read(folder: Path) -> dict[str, str]:
    """Returns the content of node.json, empty without one. Raises SettingsError."""
    file = folder / FILE
    try:
        values = json.loads(file.read_text())
        return {str(name): str(value) for name, value in values.items()}
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise SettingsError(
            f"{file} cannot be read: {error.strerror}; run this as the account that joined"
        ) from error
    except (ValueError, AttributeError) as error:
        raise SettingsError(f"{file} is damaged; join again with --replace") from error


def write(folder: Path, values: Mapping[str, str], ca: str) -> None:
    """Writes node.json and the hub's certificate (PEM; "" for none). Each file is private and replaced
    atomically. `run` needs node.json first, so it is written last."""
    if ca:
        write_durably(folder / HUB_CA, ca)
    else:
        (folder / HUB_CA).unlink(missing_ok=True)
    write_durably(folder / FILE, json.dumps(values, indent=2) + "\n")
