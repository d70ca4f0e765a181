"""The sentences that explain to a run's owner which nodes have too little room for its data."""

from __future__ import annotations

from collections.abc import Sequence

from trainhub_launch.scheduler.capacity import Demand, FreeNode
from trainhub_launch.scheduler.data_room import total_bytes
from trainhub_launch.scheduler.sizes import bytes_text

_REMEDY = (
    "ask its operator to raise TRAINHUB_NODE_DATA_CACHE_BYTES there, or to move TRAINHUB_NODE_CACHE to a "
    "larger disk"
)


def never_room(demand: Demand, nodes: Sequence[FreeNode]) -> str:
    """Returns why the data of a run fits on too few `nodes`, which have all else that it needs."""
    # A node whose room is unknown may have enough: it is not the one that lacks some.
    rooms = [(node.data.bytes, node.name) for node in nodes if node.data.bytes is not None]
    unknown = len(nodes) - len(rooms)
    room, name = sorted(rooms, reverse=True)[demand.nodes - 1 - unknown]
    whose, many = (
        ("", "no node has")
        if demand.nodes == 1
        else (" on each node", f"fewer than {demand.nodes} nodes have")
    )
    return (
        f"The data of the run has {bytes_text(total_bytes(demand.data))}{whose}, and {many} so much room for "
        f"data: {name} has {bytes_text(room)}; use fewer files, or {_REMEDY}."
    )


def no_room_now(demand: Demand, node: FreeNode) -> str:
    """Returns why the data of a run does not fit on the node at present, which it would if it were idle."""
    other = node.data.in_use - demand.data
    return (
        f"{node.name} has room for {bytes_text(node.data.bytes or 0)} of data, of which other runs use "
        f"{bytes_text(total_bytes(other))}"
    )
