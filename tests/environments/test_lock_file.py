from __future__ import annotations

import pytest

from environments.lock_file import (
    PackageChange,
    compare_packages,
    pins_of,
    read_lock,
    restrict_hashes,
    with_sizes,
)

A, B = (f"sha256:{digit * 64}" for digit in "ab")
LOCK = f"""--index-url http://a/simple
tiny-lib==1.0 \\
    --hash={A} \\
    --hash={B}
    # via -r requirements.txt
    # from http://a/simple
x[extra]==2.0+cpu \\
    --hash={A}
"""


def test_names_versions_hashes_and_indexes() -> None:
    tiny, x = read_lock(LOCK)
    assert (tiny.name, tiny.version, tiny.hashes, tiny.index) == (
        "tiny-lib",
        "1.0",
        (A, B),
        "http://a/simple",
    )
    assert (x.name, x.version, x.hashes, x.index) == ("x", "2.0+cpu", (A,), "")
    assert pins_of(LOCK) == ("tiny-lib==1.0", "x==2.0+cpu")


def test_differences_are_named_by_package() -> None:
    other = LOCK.replace("tiny-lib==1.0", "tiny-lib==1.1").replace("x[extra]==2.0+cpu", "y==3")
    assert compare_packages(read_lock(LOCK), read_lock(other)) == (
        PackageChange("tiny-lib", "1.0", "1.1"),
        PackageChange("x", "2.0+cpu", ""),
        PackageChange("y", "", "3"),
    )
    assert compare_packages(read_lock(LOCK), read_lock(LOCK)) == ()


def test_only_the_hashes_that_were_given_are_kept() -> None:
    restricted = restrict_hashes(LOCK, {"tiny-lib": frozenset({B})})
    assert read_lock(restricted)[0].hashes == (B,)
    assert read_lock(restricted)[0].index == "http://a/simple"
    assert read_lock(restricted)[1].hashes == (A,)
    assert restricted.startswith("--index-url http://a/simple\n")


def test_hashes_that_no_file_has_are_refused() -> None:
    with pytest.raises(KeyError, match=r"tiny-lib 1\.0"):
        restrict_hashes(LOCK, {"tiny-lib": frozenset({"sha256:" + "c" * 64})})


def test_a_size_leaves_the_end_of_the_lock_so_that_more_can_follow() -> None:
    sized = with_sizes(LOCK, {"tiny-lib": 1, "x": 2})
    assert sized.endswith("\n")
    tiny, x, y = read_lock(f"{sized}y==3.0\n")
    assert (tiny.size, x.size, y.version) == (1, 2, "3.0")
    assert with_sizes(LOCK, {}) == LOCK
