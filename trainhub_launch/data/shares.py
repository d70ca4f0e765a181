"""NFS shares that nodes mount: how one may be named, and the options with which it is mounted."""

from __future__ import annotations

import hashlib
import ipaddress
import json
import posixpath
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from trainhub_launch.errors import SpecError
from trainhub_launch.json_types import JsonObject

NFS = "nfs"
MAX_LENGTH = 1024
MAX_HOST_LENGTH = 253
LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?\Z")
# mount.nfs and the kernel separate options by commas, and files of mounts their fields by white space.
FORBIDDEN = frozenset(',"\\')
NUMBER = re.compile(r"[0-9]{1,7}\Z")
VERSIONS = ("3", "4", "4.0", "4.1", "4.2")
MAX_CONNECTIONS = 16
MIN_BLOCK, MAX_BLOCK = 1024, 1024 * 1024
OPTIONS_HINT = (
    f"vers ({', '.join(VERSIONS)}), nconnect (1 to {MAX_CONNECTIONS}), rsize and wsize (multiples of "
    f"{MIN_BLOCK:,} up to {MAX_BLOCK:,})"
)
# Of runs: no program of a share gains rights or is started, and no device of it is opened.
SAFE = ("nosuid", "nodev", "noexec")
# A request is sent again after 60 s, and once more after 120 s.
RETRIES = ("timeo=600", "retrans=2")
# A read of a server that is gone fails, after 180 s with NFS 3 and 4.0 and after 360 s with 4.2 (measured
# with a server whose network was cut), instead of holding GPUs for ever. A write must not fail then,
# because what a program takes for written would be lost. Locks of readers are kept on the node: nobody
# writes, and NFS 3 would need another server for them.
READING = ("ro", *SAFE, "soft", *RETRIES, "nolock")
WRITING = ("rw", *SAFE, "hard", *RETRIES)
KEY_LENGTH = 16


@dataclass(frozen=True)
class NfsShare:
    """An export of a file server. `options`: those that people may choose, as `read_share` writes them."""

    host: str
    export: str
    options: str = ""
    read_only: bool = True

    def __str__(self) -> str:
        return f"[{self.host}]:{self.export}" if ":" in self.host else f"{self.host}:{self.export}"

    @property
    def key(self) -> str:
        """Names exactly this mount: a node has one for all runs that need the same."""
        return hashlib.sha256(json.dumps(self.to_json()).encode()).hexdigest()[:KEY_LENGTH]

    @property
    def mount_options(self) -> str:
        """The options of mount(8). Without `retry=0` mount.nfs tries for two minutes."""
        fixed = READING if self.read_only else WRITING
        return ",".join(filter(None, (*fixed, "retry=0", self.options)))

    def to_settings(self) -> dict[str, str]:
        """Returns the settings of a datastore, from which `share_of` makes it again."""
        return {
            "host": self.host,
            "export": self.export,
            "options": self.options,
            "read_only": "" if self.read_only else "false",
        }

    def to_json(self) -> JsonObject:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> NfsShare:
        return cls(data["host"], data["export"], data["options"], data["read_only"])


@dataclass(frozen=True)
class InputMount:
    """An input of a run in a share that the node mounts. `path`: below the export, "" for all of it."""

    share: NfsShare
    path: str

    def __str__(self) -> str:
        return f"{self.share}{'' if self.share.export.endswith('/') else '/'}{self.path}".rstrip("/")

    def to_json(self) -> JsonObject:
        return {"share": self.share.to_json(), "path": self.path}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> InputMount:
        return cls(NfsShare.from_json(data["share"]), data["path"])


def share_of(settings: Mapping[str, str]) -> NfsShare:
    """Returns the share that the settings of a datastore name."""
    return NfsShare(
        settings["host"],
        settings["export"],
        settings.get("options", ""),
        settings.get("read_only", "") != "false",
    )


def read_share(host: str, export: str, options: str = "", read_only: str = "") -> NfsShare:
    """Returns the share in its shortest form. `read_only`: "true", "false", or "" for true. Raises SpecError
    with the name of the wrong field."""
    if read_only not in ("", "true", "false"):
        raise SpecError("read_only", f"{read_only!r:.50} is neither true nor false")
    return NfsShare(_host(host), _export(export), _options(options), read_only != "false")


def _host(text: str) -> str:
    if (address := _address(text)) is not None:
        return address
    labels = text.removesuffix(".").split(".")
    # A last label of digits is a wrong address.
    is_name = all(map(LABEL.match, labels)) and not labels[-1].isdecimal()
    if not is_name or len(text) > MAX_HOST_LENGTH:
        raise SpecError(
            "host",
            "must be the name or address of the file server, such as files.example.org or 10.0.0.5, without "
            "port, options and the export",
        )
    return text.removesuffix(".").lower()


def _address(text: str) -> str | None:
    # A scope would name an interface of one node.
    if "%" in text:
        return None
    try:
        return str(ipaddress.ip_address(text.removeprefix("[").removesuffix("]")))
    except ValueError:
        return None


def _export(text: str) -> str:
    is_plain = text.isprintable() and not FORBIDDEN & set(text) and not any(map(str.isspace, text))
    if not text.startswith("/") or not is_plain or len(text) > MAX_LENGTH:
        raise SpecError(
            "export",
            "must be the absolute path that the server exports, such as /srv/images, with at most "
            f"{MAX_LENGTH:,} characters, and without white space, commas, quotation marks and backslashes",
        )
    if ".." in text.split("/"):
        raise SpecError("export", "must not contain '..'; write the path that it leads to")
    return posixpath.normpath(f"/{text.lstrip('/')}")


def _options(text: str) -> str:
    """Returns the options sorted by their names: the same ones in another order are the same mount."""
    values: dict[str, str] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = item.partition("=")
        if name in values:
            raise SpecError("options", f"{name} stands there twice")
        if not _is_allowed(name, value):
            raise SpecError(
                "options",
                f"{item!r:.80} is not accepted; those that can be chosen are {OPTIONS_HINT}. TrainHub sets "
                "the others itself",
            )
        values[name] = value
    return ",".join(f"{name}={values[name]}" for name in sorted(values))


def _is_allowed(name: str, value: str) -> bool:
    if name == "vers":
        return value in VERSIONS
    number = int(value) if NUMBER.match(value) else 0
    if name == "nconnect":
        return 1 <= number <= MAX_CONNECTIONS
    return name in ("rsize", "wsize") and MIN_BLOCK <= number <= MAX_BLOCK and number % MIN_BLOCK == 0
