"""What a node that lacks a capability cannot do, and the remedy."""

from __future__ import annotations

from collections.abc import Iterable

from trainhub_launch.machine import (
    CHANGED_DATA,
    CHECKPOINT_STORES,
    CONDA,
    CONTAINERS,
    DATASETS,
    DOWNLOADS,
    HUB_DATA,
    IMAGE_BUILDS,
    INPUTS,
    MOUNTS,
    OUTPUT_STORES,
    PROBE,
    REFERENCES,
    WHEEL_BUILDS,
)
from trainhub_launch.scheduler.capabilities import GLIBC, glibc_phrase

_LACKING = {
    CONDA: "cannot make conda environments: upgrade its agent, or install py-rattler for the agent's Python",
    CONTAINERS: (
        "has no containers: install podman and catatonit there, upgrade its agent, or see on its page what "
        "is wrong"
    ),
    IMAGE_BUILDS: (
        "cannot build images from Dockerfiles: run its agent as root, with podman and catatonit installed "
        "and user namespaces allowed (sysctl user.max_user_namespaces above 0), and upgrade it"
    ),
    INPUTS: "does not know inputs of runs: upgrade its agent",
    DATASETS: "does not know versions of datasets: upgrade its agent, or install obstore for its Python",
    DOWNLOADS: "does not download data: upgrade its agent, or install obstore for its Python",
    HUB_DATA: "does not download data from the hub: upgrade its agent, or install obstore for its Python",
    OUTPUT_STORES: (
        "does not write outputs into datastores: upgrade its agent, or install obstore for its Python"
    ),
    MOUNTS: (
        "does not mount NFS shares: run its agent as root on a kernel with NFS, install nfs-common (Debian, "
        "Ubuntu) or nfs-utils (RHEL, Rocky, Fedora) there, upgrade its agent, and see that "
        "TRAINHUB_NODE_NFS_SERVERS is not none there"
    ),
    PROBE: "cannot test datastores, or list their files: upgrade its agent",
    REFERENCES: "does not know inputs by reference: upgrade its agent, or install obstore for its Python",
    CHECKPOINT_STORES: (
        "does not write checkpoints into datastores: upgrade its agent, or install obstore for its Python"
    ),
    CHANGED_DATA: "does not go on with files that were changed: upgrade its agent",
    WHEEL_BUILDS: (
        "cannot build wheels from source: upgrade its agent, and install uv beside it (pip install uv)"
    ),
}


def lacking_phrase(capability: str, present: Iterable[str] = ()) -> str:
    """Returns what a node without the capability cannot do, and the remedy, as it follows the node's name.
    `present`: the capabilities that it has."""
    if capability.startswith(GLIBC):
        return glibc_phrase(capability, present)
    return _LACKING.get(capability, f"lacks {capability}: upgrade its agent")
