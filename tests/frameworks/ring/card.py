"""A ring in the wizard."""

from __future__ import annotations

from tests.frameworks.ring.configuration import MAX_MEMBERS, RingConfiguration
from trainhub_launch.distribution import MAX_NODES
from trainhub_launch.frameworks.form import ChoiceField, FormCard, NumberField

CARD = FormCard(
    "ring",
    "Ring of processes",
    "TrainHub starts every member of the ring and tells it which one comes next.",
    variables="RING_RANK RING_SIZE RING_NEXT MASTER_ADDR MASTER_PORT",
    fields=(
        NumberField("ring_member_count", "Members", "distribution.member_count", "3", MAX_MEMBERS),
        ChoiceField(
            "ring_direction",
            "Direction",
            "distribution.direction",
            "forward",
            choices=(("forward", "Forward"), ("backward", "Backward")),
        ),
        NumberField("ring_node_count", "Nodes", "distribution.node_count", "1", MAX_NODES),
    ),
    configuration=RingConfiguration,
)
