"""Random lists of node names, for tests with and without a Slurm."""

from __future__ import annotations

from hypothesis import strategies as st

NUMBER = st.integers(0, 120)
RANGE = st.tuples(NUMBER, st.integers(0, 8), st.integers(1, 4)).map(
    lambda parts: (parts[0], parts[0] + parts[1], parts[2])
)
PREFIX = st.sampled_from(["n", "gpu-", "rack1n"])
LISTS = st.lists(st.tuples(PREFIX, st.lists(RANGE, min_size=1, max_size=3)), min_size=1, max_size=4)
HostRanges = list[tuple[str, list[tuple[int, int, int]]]]


def written(hosts: HostRanges) -> str:
    """As Slurm writes it: the first number of a range has its leading zeros."""
    words = [
        prefix + "[" + ",".join(f"{first:0{width}}-{last:0{width}}" for first, last, width in ranges) + "]"
        for prefix, ranges in hosts
    ]
    return ",".join(words)
