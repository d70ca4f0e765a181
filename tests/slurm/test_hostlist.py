"""Lists of node names in Slurm's short form."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clusters.backends.slurm.hostlist import expand_hostlist
from tests.slurm.cluster import SlurmCluster

WORDS = {
    "n1": ["n1"],
    "n[1-3,7]": ["n1", "n2", "n3", "n7"],
    "n[08-11]": ["n08", "n09", "n10", "n11"],
    "n[00-2]": ["n00", "n01", "n02"],
    "r[1-2]n[01-02]": ["r1n01", "r1n02", "r2n01", "r2n02"],
    "n[1,1]": ["n1", "n1"],
    "a,,b": ["a", "b"],
    "": [],
}


@pytest.mark.parametrize(("text", "names"), WORDS.items())
def test_names(text: str, names: list[str]) -> None:
    assert expand_hostlist(text) == names


@pytest.mark.parametrize("text", ["n[1-3", "n1-3]", "n[[1]]", "n[3-1]", "n[a-b]", "n[]", "n[1-999999999999]"])
def test_what_is_no_list(text: str) -> None:
    with pytest.raises(ValueError, match=r"bracket|range|more than"):
        expand_hostlist(text)


def test_a_product_of_ranges_has_a_limit() -> None:
    with pytest.raises(ValueError, match="more than 1000 names"):
        expand_hostlist("a[1-999]b[1-999]c[1-999]", 1000)


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


@pytest.mark.slurm
@pytest.mark.slow
# The cluster is only read.
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lists=st.lists(LISTS, min_size=1, max_size=8))
def test_scontrol_reads_any_list_alike(slurm: SlurmCluster, lists: list[HostRanges]) -> None:
    text = ",".join(map(written, lists))
    assert slurm.admin("scontrol", "show", "hostnames", text).split() == expand_hostlist(text)


@given(LISTS)
def test_any_list(hosts: HostRanges) -> None:
    names = [
        f"{prefix}{number:0{width}}"
        for prefix, ranges in hosts
        for first, last, width in ranges
        for number in range(first, last + 1)
    ]
    assert expand_hostlist(written(hosts)) == names
