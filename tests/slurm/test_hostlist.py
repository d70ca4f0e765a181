"""Lists of node names in Slurm's short form."""

from __future__ import annotations

import pytest
from hypothesis import given

from clusters.backends.slurm.hostlist import expand_hostlist
from tests.slurm.host_ranges import LISTS, HostRanges, written

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


@given(LISTS)
def test_any_list(hosts: HostRanges) -> None:
    names = [
        f"{prefix}{number:0{width}}"
        for prefix, ranges in hosts
        for first, last, width in ranges
        for number in range(first, last + 1)
    ]
    assert expand_hostlist(written(hosts)) == names
