"""Finds nodes that cannot reach each other over the network, or that frameworks cannot tell apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from trainhub_launch.findings.finding import Finding
from trainhub_launch.scheduler.capacity import FreeNode, words


def hosts(chosen: Sequence[FreeNode]) -> Iterator[Finding]:
    """Yields findings about the network of `chosen`, the nodes that the run would get, in the order of node
    ranks."""
    if len(chosen) < 2:
        return
    yield from _cut_off(chosen)
    yield from _same_address(chosen)
    unknown = [node.name for node in chosen if not node.interface]
    if unknown:
        yield Finding(
            "warning",
            "resources.cluster",
            f"no network interface is known for {words(unknown)}; its ranks may not reach the "
            "others: set TRAINHUB_NODE_INTERFACE there",
        )


def same_host_name(chosen: Sequence[FreeNode]) -> Iterator[Finding]:
    """Yields findings about nodes with equal host names, for frameworks that tell machines apart by them."""
    for same in _alike(chosen, lambda node: node.hostname):
        yield Finding(
            "warning",
            "resources.cluster",
            f"{words([node.name for node in same])} are both called "
            f"{same[0].hostname}; DeepSpeed and Horovod count host names and take them for one "
            "machine: give each a different host name",
        )


def _cut_off(chosen: Sequence[FreeNode]) -> Iterator[Finding]:
    """Yields an error if other nodes cannot reach one of `chosen`. Several agents of one machine reach each
    other at the loopback, so they are no error."""
    alone = [node for node in chosen if node.is_alone]
    # With equal host names all nodes are taken for agents of one machine, which reach each other at the
    # loopback.
    if alone and len({node.hostname for node in chosen}) > 1:
        names, address = words([node.name for node in alone]), alone[0].address or "no address"
        reports = "reports" if len(alone) == 1 else "report"
        yield Finding(
            "error",
            "resources.cluster",
            f"{names} {reports} {address}, which no other node can reach: set "
            "TRAINHUB_NODE_ADDRESS there to an address of its network and start the agent again",
        )


def _same_address(chosen: Sequence[FreeNode]) -> Iterator[Finding]:
    # Nodes at a loopback address are left out: they all report 127.0.0.1, and `_cut_off` has its own message
    # for them.
    for same in _alike(chosen, lambda node: "" if node.is_alone else node.address):
        yield Finding(
            "warning",
            "resources.cluster",
            f"{words([node.name for node in same])} report the same address {same[0].address}, "
            "so their ranks cannot be told apart: set TRAINHUB_NODE_ADDRESS on one of them",
        )


def _alike(chosen: Sequence[FreeNode], key: Callable[[FreeNode], str]) -> Iterator[list[FreeNode]]:
    groups: dict[str, list[FreeNode]] = {}
    for node in chosen:
        groups.setdefault(key(node), []).append(node)
    # Nodes without a value cannot be compared and are no group.
    yield from (group for value, group in groups.items() if value and len(group) > 1)
