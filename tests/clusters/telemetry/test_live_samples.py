from __future__ import annotations

import json
from typing import Any

from clusters.models import Node
from clusters.telemetry.live_samples import MAX_STEPS, messages
from trainhub_launch.telemetry import HOST, Block, pack

START = 1_800_000_000
ALPHA = Node(pk=1, name="alpha", clock_offset_s=0.0)


def block(
    start: int, subjects: tuple[str, ...], metrics: tuple[str, ...], *steps: list[dict[str, float]]
) -> Block:
    return Block(start, 1, subjects, metrics, pack(steps, metrics))


def sent_messages(*blocks: Block, node: Node = ALPHA) -> list[Any]:
    return [json.loads(text) for text in messages(node, blocks)]


class TestMessages:
    def test_host_and_gpus_of_the_same_seconds_come_together(self) -> None:
        host = block(START, (HOST,), ("cpu_pct",), [{"cpu_pct": 12.5}], [{"cpu_pct": 99.0}])
        gpus = block(
            START,
            ("GPU-a", "GPU-b"),
            ("power_w", "fan_pct"),
            [{"power_w": 700}, {"fan_pct": 1}],
            [{}, {"power_w": 70}],
        )
        assert sent_messages(host, gpus) == [
            {
                "type": "telemetry.sampled",
                "node": "alpha",
                "start": START,
                "step_s": 1,
                "host": {"metrics": ["cpu_pct"], "values": [[12.5], [99.0]]},
                "gpus": {
                    "subjects": ["GPU-a", "GPU-b"],
                    "metrics": ["power_w", "fan_pct"],
                    "values": [[[700.0, None], [None, 1.0]], [[None, None], [70.0, None]]],
                },
            }
        ]

    def test_a_node_without_gpus_tells_of_its_host_alone(self) -> None:
        (message,) = sent_messages(block(START, (HOST,), ("cpu_pct",), [{"cpu_pct": 1.0}]))
        assert "gpus" not in message

    def test_times_are_the_hubs(self) -> None:
        late = Node(pk=1, name="alpha", clock_offset_s=3599.6)
        (message,) = sent_messages(block(START, (HOST,), ("cpu_pct",), [{"cpu_pct": 1.0}]), node=late)
        assert message["start"] == START + 3600

    def test_gpus_of_different_metrics_come_one_after_the_other(self) -> None:
        whole, part = (
            block(START, ("GPU-a",), ("power_w",), [{}]),
            block(START, ("MIG-a",), ("memory_used_bytes",), [{}]),
        )
        assert [message["gpus"]["subjects"] for message in sent_messages(whole, part)] == [
            ["GPU-a"],
            ["MIG-a"],
        ]

    def test_numbers_are_short(self) -> None:
        (message,) = messages(ALPHA, [block(START, (HOST,), ("load_1",), [{"load_1": 1 / 3}])])
        assert '"values":[[0.33]]' in message

    def test_only_the_latest_of_very_many_are_shown(self) -> None:
        (message,) = sent_messages(
            block(START, (HOST,), ("load_1",), *[[{"load_1": float(step)}] for step in range(MAX_STEPS + 50)])
        )
        assert (message["start"], message["host"]["values"][0]) == (START + 50, [50.0])
