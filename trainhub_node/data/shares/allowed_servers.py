"""The setting that says which file servers' shares a node mounts.

Hosts are compared as datastores name them. No name is looked up: whoever has made a name also says to which
address it leads, and may say another one when the share is mounted."""

from __future__ import annotations

import ipaddress

from trainhub_launch.data.shares import read_share
from trainhub_launch.errors import SpecError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trainhub_launch.data.shares import NfsShare

    Network = ipaddress.IPv4Network | ipaddress.IPv6Network

NAME, NONE = "TRAINHUB_NODE_NFS_SERVERS", "none"


def nfs_servers(env: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the servers, networks and exports that the node mounts; () = all, (NONE,) = no share. Raises
    ValueError."""
    value = env.get(NAME, "")
    if value in ("", NONE):
        return (NONE,) if value else ()
    entries = tuple(entry.strip() for entry in value.split(","))
    for entry in entries:
        try:
            _parse(entry)
        except (SpecError, ValueError) as error:
            raise ValueError(
                f"{NAME}={value} must be {NONE}, or servers, networks and exports separated by commas, such "
                f"as files.example.org, 10.0.0.0/24 and 10.0.0.5:/srv/images; {entry!r} is none of these"
            ) from error
    return entries


def find_refusal(entries: Sequence[str], share: NfsShare) -> str:
    """Returns why a node with that setting does not mount the share, with the remedy, as a phrase; "" if it
    may."""
    if not entries or (NONE not in entries and any(_covers(entry, share) for entry in entries)):
        return ""
    return (
        f"its setting {NAME} does not allow that; an operator of the node can add {share.host}, or only "
        f"{share}, there"
    )


def _covers(entry: str, share: NfsShare) -> bool:
    server, export = _parse(entry)
    if export not in ("", share.export):
        return False
    if isinstance(server, str):
        return server == share.host
    try:
        return ipaddress.ip_address(share.host) in server
    except ValueError:
        return False  # a name


def _parse(entry: str) -> tuple[str | Network, str]:
    """Returns host or network, and the export, "" for all. Raises SpecError and ValueError."""
    place, export = _split(entry)
    if "/" in place:
        server: str | Network = ipaddress.ip_network(place)
    elif place == NONE:
        raise ValueError(entry)
    else:
        server = read_share(place, "/").host
    return server, read_share("any", export).export if export else ""


def _split(entry: str) -> tuple[str, str]:
    """Returns host or network, and the export. An address of IPv6 with an export is in brackets."""
    if entry.startswith("["):
        place, _, rest = entry[1:].partition("]")
        if rest and not rest.startswith(":/"):
            raise ValueError(entry)
        return place, rest[1:]
    place, separator, rest = entry.partition(":/")
    # An address of IPv6, or a network of such ones.
    if ":" in place:
        return entry, ""
    return place, f"/{rest}" if separator else ""
