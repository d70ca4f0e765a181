"""What a node remembers of its measurements, second by second and in buckets of ten, whatever its clock
does."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from itertools import pairwise

import pytest

from trainhub_launch.telemetry import BUCKET_S, HOST, Block, check, unpack
from trainhub_node.telemetry.buckets import MAX_BLOCKS, MAX_BUCKETS, Bucket, Recorder, merge

START = 1_800_000_000
A, B = "GPU-a", "GPU-b"
Numbers = Mapping[str, float]
MANY = 10**9


class Node:
    """A recorder with a clock to set: `ahead` seconds of the steady one."""

    def __init__(self) -> None:
        self.recorder = Recorder()
        self.steady = 0.0
        self.ahead = START + 0.5

    def tick(self, seconds: int = 1, *, gpus: Mapping[str, Numbers] | None = None, **host: float) -> None:
        for _ in range(seconds):
            self.recorder.add(self.steady + self.ahead, self.steady, host or {"cpu_pct": 1.0}, gpus or {})
            self.steady += 1

    def buckets(self, most: int = MANY) -> tuple[Bucket, ...]:
        return self.recorder.buckets(most, MANY)

    def blocks(self) -> tuple[Block, ...]:
        return merge(self.buckets())

    def starts(self) -> list[int]:
        return [bucket.start - START for bucket in self.buckets()]


@pytest.fixture
def node() -> Node:
    return Node()


def table(block: Block, *, peaks: bool = False) -> list[dict[str, dict[str, float | None]]]:
    """step -> subject -> metric -> value, None for not known."""
    check(block)
    numbers = iter(
        [None if math.isnan(value) else value for value in unpack(block.peaks if peaks else block.values)]
    )
    return [
        {subject: {metric: next(numbers) for metric in block.metrics} for subject in block.subjects}
        for _ in range(block.steps)
    ]


def gpu_block(blocks: Sequence[Block]) -> Block:
    (result,) = [block for block in blocks if not block.is_host]
    return result


class TestBuckets:
    def test_hold_mean_and_maximum_of_ten_seconds(self, node: Node) -> None:
        for second in range(11):
            node.tick(cpu_pct=10.0 * second)

        (block,) = node.blocks()

        assert (block.start, block.step_s, block.subjects) == (START, BUCKET_S, (HOST,))
        assert (table(block), table(block, peaks=True)) == (
            [{HOST: {"cpu_pct": 45.0}}],
            [{HOST: {"cpu_pct": 90.0}}],
        )

    def test_begin_at_multiples_of_ten_however_the_node_began(self, node: Node) -> None:
        node.ahead += 7
        node.tick(24)

        assert node.starts() == [0, 10, 20]

    def test_take_the_mean_of_the_seconds_in_which_a_number_was_known(self, node: Node) -> None:
        node.tick(8, gpus={A: {"power_w": 100.0}})
        node.tick(3, gpus={A: {"power_w": 300.0, "temperature_c": 50.0}})

        assert table(gpu_block(node.blocks())) == [{A: {"power_w": 140.0, "temperature_c": 50.0}}]

    def test_hold_nothing_of_what_was_never_known(self, node: Node) -> None:
        node.tick(11, gpus={A: {"power_w": 100.0}, B: {}})

        assert gpu_block(node.blocks()).subjects == (A,)

    def test_tell_what_one_gpu_lacks_as_not_known(self, node: Node) -> None:
        node.tick(11, gpus={A: {"power_w": 1.0}, B: {"fan_pct": 2.0}})

        assert table(gpu_block(node.blocks())) == [
            {A: {"power_w": 1.0, "fan_pct": None}, B: {"power_w": None, "fan_pct": 2.0}}
        ]

    def test_hold_every_gpu_that_was_there_for_a_part_of_them(self, node: Node) -> None:
        node.tick(4, gpus={A: {"power_w": 10.0}})
        node.tick(4, gpus={A: {"power_w": 20.0}, B: {"power_w": 7.0}})
        node.tick(3, gpus={B: {"power_w": 8.0}})

        assert table(gpu_block(node.blocks()), peaks=True) == [{A: {"power_w": 20.0}, B: {"power_w": 8.0}}]

    def test_leave_out_metrics_that_the_hub_does_not_know(self, node: Node) -> None:
        node.tick(11, gpus={A: {"power_w": 1.0, "of_tomorrow": 1.0}})

        assert gpu_block(node.blocks()).metrics == ("power_w",)

    def test_are_missing_where_nothing_was_measured(self, node: Node) -> None:
        node.tick(10)
        node.steady += 25
        node.tick(20)

        assert node.starts() == [0, 30, 40]


class TestOnTheRoad:
    def test_alike_ones_in_a_row_share_a_block(self, node: Node) -> None:
        node.tick(61, gpus={A: {"power_w": 1.0}, B: {"power_w": 2.0}})

        host, gpus = node.blocks()

        assert (host.is_host, host.steps, gpus.subjects, gpus.steps) == (True, 6, (A, B), 6)
        assert table(gpus)[5] == {A: {"power_w": 1.0}, B: {"power_w": 2.0}}

    def test_a_hole_or_another_gpu_begins_a_new_block(self, node: Node) -> None:
        node.tick(20, gpus={A: {"power_w": 1.0}})
        node.steady += 20
        node.tick(10, gpus={A: {"power_w": 1.0}})
        node.tick(11, gpus={B: {"power_w": 1.0}})

        assert [
            (block.start - START, block.subjects, block.steps) for block in node.blocks() if not block.is_host
        ] == [
            (0, (A,), 2),
            (40, (A,), 1),
            (50, (B,), 1),
        ]

    def test_the_oldest_go_first_and_only_so_many(self, node: Node) -> None:
        node.tick(101)

        assert [bucket.start - START for bucket in node.buckets(3)] == [0, 10, 20]

    def test_no_more_bytes_than_asked_for_but_at_least_one_bucket(self, node: Node) -> None:
        node.tick(101)
        size = node.buckets()[0].size

        assert len(node.recorder.buckets(MANY, 3 * size)) == 3
        assert len(node.recorder.buckets(MANY, 1)) == 1

    def test_no_more_blocks_than_the_hub_takes_though_none_can_be_joined(self, node: Node) -> None:
        for bucket in range(101):
            node.tick(10, gpus={(A, B)[bucket % 2]: {"power_w": 1.0}})

        assert 0 < len(node.blocks()) <= MAX_BLOCKS

    def test_confirmed_ones_are_not_sent_again(self, node: Node) -> None:
        node.tick(51)
        sent = node.buckets(3)

        node.recorder.confirm(sent, START + 20)

        assert node.starts() == [20, 30, 40]

    def test_only_those_that_were_sent_can_be_confirmed(self, node: Node) -> None:
        node.tick(51)

        node.recorder.confirm(node.buckets(2), START + 10**6)

        assert node.starts() == [20, 30, 40]

    def test_after_an_hour_the_oldest_are_dropped(self, node: Node) -> None:
        node.tick(3600 + 55)

        assert len(node.buckets()) == MAX_BUCKETS
        assert node.starts()[0] == 50


class TestAClockThatIsSet:
    @pytest.mark.parametrize("hours", [1, -1, 24, -24])
    def test_takes_what_is_held_along(self, node: Node, hours: int) -> None:
        node.tick(30)
        node.ahead += hours * 3600
        node.tick(31)

        assert node.starts() == [hours * 3600 + start for start in (0, 10, 20, 30, 40, 50)]

    @pytest.mark.parametrize("seconds", [-14, -10, -6, -3, -1, 1, 3, 6, 10, 14])
    def test_by_a_little_tells_no_moment_twice(self, node: Node, seconds: int) -> None:
        node.tick(35)
        node.ahead += seconds
        node.tick(60)

        starts = node.starts()

        assert len(starts) >= 7
        assert all(later - earlier >= BUCKET_S for earlier, later in pairwise(starts))

    def test_confirms_what_was_sent_before_it_was_set(self, node: Node) -> None:
        node.tick(41)
        sent = node.buckets(2)
        node.ahead -= 3600

        node.tick()
        node.recorder.confirm(sent, START + 20)

        assert [bucket.start - START + 3600 for bucket in node.buckets()] == [20, 30, 40]

    def test_from_the_epoch_leaves_nothing_before_it(self, node: Node) -> None:
        node.tick(35)
        node.ahead -= START
        node.tick(60)

        assert all(bucket.start >= 0 for bucket in node.buckets())
        assert len(node.buckets()) > 5

    def test_does_not_move_what_a_sleeping_machine_had_measured(self, node: Node) -> None:
        node.tick(20)
        node.steady += 7200
        node.tick(11)

        assert node.starts() == [0, 10, 7220]

    def test_at_random_gives_blocks_that_the_hub_takes(self) -> None:
        chance = random.Random(4)  # noqa: S311 - a test that repeats
        node = Node()
        for _ in range(300):
            node.ahead = max(
                -node.steady,
                node.ahead + chance.choice([0, 0, 0, 0.4, -0.4, 2, -2, 7, -7, 3600, -3600, 0.01]),
            )
            node.steady += chance.choice([0, 0, 0, 0.2, 30])
            node.tick(
                chance.randrange(15),
                gpus={gpu: {"power_w": 1.0} for gpu in chance.choice([(), (A,), (A, B)])},
            )
            blocks = [*node.recorder.samples(0)[0], *node.blocks()]
            for block in blocks:
                check(block)
            for lane in ("host samples", "gpu samples", "host buckets", "gpu buckets"):
                spans = sorted((block.start, block.end) for block in blocks if _lane(block) == lane)
                assert all(one[1] <= other[0] for one, other in pairwise(spans))


class TestSamples:
    def test_are_the_last_minute_at_most(self, node: Node) -> None:
        node.tick(100, gpus={A: {"power_w": 3.0}})

        blocks, _ = node.recorder.samples(after=0)

        assert [(block.start - START, block.step_s, block.steps, block.peaks) for block in blocks] == [
            (40, 1, 60, b"")
        ] * 2

    def test_are_those_since_the_last_ones(self, node: Node) -> None:
        node.tick(5)
        _, last = node.recorder.samples(after=0)
        node.tick(cpu_pct=42.0)

        (block,), again = node.recorder.samples(after=last)

        assert (block.start - START, table(block)) == (5, [{HOST: {"cpu_pct": 42.0}}])
        assert node.recorder.samples(after=again)[0] == ()
        assert not node.recorder.has_samples(after=again)

    def test_tell_a_gpu_that_says_nothing_as_not_known(self, node: Node) -> None:
        node.tick(gpus={A: {"power_w": 3.0}, B: {}})

        assert table(gpu_block(node.recorder.samples(0)[0])) == [{A: {"power_w": 3.0}, B: {"power_w": None}}]

    def test_of_one_second_are_told_once(self, node: Node) -> None:
        node.tick(3)
        node.steady -= 0.9
        node.tick()

        assert node.recorder.samples(0)[0][0].steps == 3


def _lane(block: Block) -> str:
    return f"{'host' if block.is_host else 'gpu'} {'samples' if block.step_s == 1 else 'buckets'}"
