from __future__ import annotations

import pytest

from trainhub_launch.errors import WireError
from trainhub_launch.report import LogChunk
from trainhub_launch.telemetry import BUCKET_S, HOST, Block, check
from trainhub_launch.wire import read


@pytest.mark.parametrize("offset", [True, "0", None, 0.5])
def test_a_whole_number_is_no_other_thing(offset: object) -> None:
    with pytest.raises(WireError, match=r"LogChunk\.offset is"):
        read(LogChunk, {"run": "r", "attempt": 1, "name": "n", "offset": offset, "data": b""})


@pytest.mark.parametrize("subjects", [(HOST, "GPU-a"), ("GPU-a", HOST)])
def test_the_host_has_a_block_of_its_own(subjects: tuple[str, ...]) -> None:
    numbers = bytes(4 * len(subjects))
    with pytest.raises(WireError, match="the host alone"):
        check(Block(0, BUCKET_S, subjects, ("utilization_pct",), numbers, numbers))
