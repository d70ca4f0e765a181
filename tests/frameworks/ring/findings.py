"""Findings about rings."""

from __future__ import annotations

from collections.abc import Iterator

from tests.frameworks.ring.configuration import RingConfiguration
from trainhub_launch.distribution import narrow
from trainhub_launch.findings.finding import Finding
from trainhub_launch.findings.process_counts import against_gpus
from trainhub_launch.frameworks.layout import deal
from trainhub_launch.spec import RunSpec


def findings(spec: RunSpec) -> Iterator[Finding]:
    configuration, gpus = narrow(spec.distribution, RingConfiguration), spec.resources.gpus_per_node
    largest = max(deal(configuration.member_count, configuration.node_count))
    if configuration.member_count == 1:
        yield Finding(
            "warning", "distribution.member_count", "a ring of one member is no ring; give at least 2"
        )
    full = f"member_count {gpus * configuration.node_count}"
    yield from against_gpus("warning", "distribution.member_count", largest, gpus, full)


def suggestion(name: str) -> str:
    return "choose the Ring distribution, which sets it" if name.startswith("RING_") else ""
