from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from starlette.datastructures import Headers

from workspaces.stored_files import preconditions

TAG, OTHER = '"aaaa"', '"bbbb"'
MODIFIED = "Sun, 22 Nov 2026 10:00:00 GMT"
EARLIER, LATER = "Sun, 22 Nov 2026 09:59:59 GMT", "Sun, 22 Nov 2026 10:00:01 GMT"


def failed(method: str = "GET", **headers: str) -> int | None:
    told = Headers({name.replace("_", "-"): value for name, value in headers.items()})
    return preconditions.failed(method, told, TAG, MODIFIED)


def spans(told: str, size: int = 1000, method: str = "GET", **headers: str) -> list[tuple[int, int]] | None:
    named = {"range": told, **{name.replace("_", "-"): value for name, value in headers.items()}}
    return preconditions.spans(method, Headers(named), size, TAG, MODIFIED)


class TestConditions:
    @pytest.mark.parametrize(
        ("told", "answer"),
        [
            (TAG, 304),
            (f"W/{TAG}", 304),
            ("*", 304),
            (f"{OTHER}, {TAG}", 304),
            (f'"a,b" ,{TAG}', 304),
            (OTHER, None),
            ("aaaa", None),
            ("", None),
            (f"{TAG} junk", None),
        ],
    )
    def test_if_none_match_compares_weakly(self, told: str, answer: int | None) -> None:
        assert failed(if_none_match=told) == failed("HEAD", if_none_match=told) == answer

    def test_if_none_match_of_a_write_is_a_failed_precondition(self) -> None:
        assert failed("PUT", if_none_match="*") == 412

    @pytest.mark.parametrize(
        ("told", "answer"),
        [
            (TAG, None),
            ("*", None),
            (f"{OTHER},{TAG}", None),
            (OTHER, 412),
            (f"W/{TAG}", 412),
            ("", 412),
            ("aaaa", 412),
        ],
    )
    def test_if_match_compares_strongly(self, told: str, answer: int | None) -> None:
        assert failed(if_match=told) == answer

    @pytest.mark.parametrize(
        ("told", "answer"), [(MODIFIED, 304), (LATER, 304), (EARLIER, None), ("yesterday", None)]
    )
    def test_if_modified_since(self, told: str, answer: int | None) -> None:
        assert failed(if_modified_since=told) == answer

    @pytest.mark.parametrize(
        ("told", "answer"), [(MODIFIED, None), (LATER, None), (EARLIER, 412), ("yesterday", None)]
    )
    def test_if_unmodified_since(self, told: str, answer: int | None) -> None:
        assert failed(if_unmodified_since=told) == answer

    def test_dates_count_only_where_no_tag_is_given(self) -> None:
        assert failed(if_none_match=OTHER, if_modified_since=LATER) is None
        assert failed(if_match=TAG, if_unmodified_since=EARLIER) is None

    def test_what_must_match_is_looked_at_before_what_must_not(self) -> None:
        assert failed(if_match=OTHER, if_none_match=TAG) == 412
        assert failed(if_unmodified_since=EARLIER, if_none_match=TAG) == 412
        assert failed(if_match=TAG, if_none_match=TAG) == 304

    def test_a_file_that_could_change_within_the_same_second_has_no_date_yet(self) -> None:
        assert preconditions.last_modified(timezone.now()) is None
        assert preconditions.last_modified(timezone.now() - timedelta(seconds=2)) is not None


class TestRanges:
    @pytest.mark.parametrize(
        ("told", "found"),
        [
            ("bytes=0-9", [(0, 10)]),
            ("bytes=990-", [(990, 1000)]),
            ("bytes=-10", [(990, 1000)]),
            ("bytes=-5000", [(0, 1000)]),
            ("BYTES = 5-5", [(5, 6)]),
            ("bytes=0-99999999999999999999", [(0, 1000)]),
            ("bytes=5-6, ,2-3", [(2, 4), (5, 7)]),
            ("bytes=0-5,3-9,10-11", [(0, 12)]),
            ("bytes=0-1,2000-", [(0, 2)]),
        ],
    )
    def test_are_taken_in_order_without_overlaps(self, told: str, found: list[tuple[int, int]]) -> None:
        assert spans(told) == found

    @pytest.mark.parametrize("told", ["bytes=1000-", "bytes=2000-3000", "bytes=-0", "bytes=1000-,-0"])
    def test_outside_the_file_cannot_be_satisfied(self, told: str) -> None:
        assert spans(told) == []

    @pytest.mark.parametrize(
        "told",
        [
            "lines=0-9",
            "bytes",
            "bytes=",
            "bytes=-",
            "bytes=a-b",
            "bytes=9-0",
            "bytes=0-1,x",
            "bytes=1",
            "bytes=--1",
            "bytes 0-9",
            "bytes=0x1-2",
            "bytes=\u00b2-3",
            "items=0-1;bytes=0-1",
            f"bytes={'9' * 31}-",
        ],
    )
    def test_of_unknown_units_or_wrong_syntax_are_ignored(self, told: str) -> None:
        assert spans(told) is None

    def test_too_many_are_ignored(self) -> None:
        assert len(spans("bytes=" + ",".join(f"{at}-{at}" for at in range(0, 200, 2))) or ()) == 100
        assert spans("bytes=" + ",".join(f"{at}-{at}" for at in range(0, 202, 2))) is None

    @pytest.mark.parametrize("told", [TAG, MODIFIED])
    def test_count_where_if_range_names_this_very_state(self, told: str) -> None:
        assert spans("bytes=0-9", if_range=told) == [(0, 10)]

    @pytest.mark.parametrize("told", [OTHER, f"W/{TAG}", LATER, "junk"])
    def test_are_ignored_where_if_range_names_another_state(self, told: str) -> None:
        assert spans("bytes=0-9", if_range=told) is None

    def test_of_anything_but_a_get_are_ignored(self) -> None:
        assert spans("bytes=0-9", method="HEAD") is None
