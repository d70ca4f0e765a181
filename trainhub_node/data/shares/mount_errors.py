"""Says why a share could not be mounted, with the remedy, from what mount.nfs has written."""

from __future__ import annotations

from trainhub_node.data.shares.nfs_client import LOAD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainhub_launch.data.shares import NfsShare

UNRESOLVED = "the name {host} has no address there: check it, and the name server of that machine"
NO_ROUTE = "there is no route to {host}: check the address, and the network between them"
# A server does not tell which of the two it is.
DENIED = (
    "{host} has no {export} for this node: check the path, and export it to the node's address there "
    "(/etc/exports, then exportfs -ra)"
)
NO_VERSION = "{host} does not speak the chosen version of NFS: choose another one by the option vers"
# Words of mount.nfs -> what they mean. The first that stands anywhere counts: it tries several versions of
# NFS, and what it says of the last one may not be the reason.
REASONS = {
    "access denied by server": DENIED,
    "Permission denied": DENIED,
    "Failed to resolve server": UNRESOLVED,
    "Name or service not known": UNRESOLVED,
    "Temporary failure in name resolution": UNRESOLVED,
    "Resource temporarily unavailable": UNRESOLVED,
    "No route to host": NO_ROUTE,
    "Network is unreachable": NO_ROUTE,
    "No such file or directory": DENIED,
    "not a directory": "{export} of {host} is no folder: name the folder above it",
    "Stale file handle": "{host} has lost {export}: export it there again (exportfs -ra)",
    "Connection refused": "no NFS server runs on {host}: start it there",
    "timed out": (
        "{host} does not answer: see whether it is up, and whether firewalls let port 2049 through"
    ),
    "NFS version or transport protocol is not supported": NO_VERSION,
    "Protocol not supported": NO_VERSION,
    "rpc.statd is not running": (
        "writing by NFS 3 needs rpc.statd on the node: start it (systemctl start rpc-statd), or choose vers=4"
    ),
    "No such device": LOAD,
    "unknown filesystem type": LOAD,
    "Operation not permitted": (
        "neither its kernel nor {host} lets it mount {export}: give the agent's container CAP_SYS_ADMIN, or "
        "export the path to the node's address there"
    ),
}
MAX_TEXT = 300


def explain_failure(share: NfsShare, lines: Sequence[str]) -> str:
    """Returns a phrase. `lines`: what mount.nfs has written."""
    text = "\n".join(lines)
    for words, phrase in REASONS.items():
        if words in text:
            return phrase.format(host=share.host, export=share.export)
    return (lines[-1] if lines else "mount.nfs failed without a word")[:MAX_TEXT]


def explain_silence(share: NfsShare, seconds: float) -> str:
    """Returns a phrase about a server that has not answered for so long."""
    return (
        f"{share.host} did not answer within {seconds:.0f} s: see whether it is up, and whether firewalls "
        "let port 2049 through"
    )
