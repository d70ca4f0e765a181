"""The pure parts of the lanes, run where they live: in a browser."""

from __future__ import annotations

from typing import Any

import pytest

from tests.pages.logs.test_log_modules import run, tab

__all__ = ["tab"]
pytestmark = pytest.mark.browser


class TestWhoHangs:
    @pytest.mark.parametrize(
        ("silences", "stuck"),
        [
            ({"a": 1, "b": 2, "c": 300}, ["c"]),
            ({"a": 300, "b": 310, "c": 290}, []),
            ({"a": 1, "b": 15}, []),
            ({"a": 1, "b": 25}, ["b"]),
            ({"a": 500}, []),
            ({"a": 0, "b": 0, "c": 0, "d": 120, "e": 130}, ["d", "e"]),
            ({}, []),
        ],
    )
    def test_only_who_is_silent_far_longer_than_its_peers(
        self, tab: Any, silences: dict[str, float], stuck: list[str]
    ) -> None:
        assert run(tab, "clock", "return [...m.stuck(new Map(Object.entries(given)))]", silences) == stuck


class TestAxis:
    @pytest.mark.parametrize("span", [1, 7, 59, 61, 600, 3599, 86_400, 40 * 86_400])
    def test_has_a_few_ticks_of_round_numbers_however_long_the_run(self, tab: Any, span: int) -> None:
        found = run(tab, "clock", "return m.ticks(given, 0)", span)
        assert 1 <= len(found) <= 5
        assert all(0 <= at < span for at, _ in found)
        assert all(label.startswith("+") for _, label in found[1:])


class TestSearch:
    def test_goes_on_page_by_page_and_shows_a_line_once(self, tab: Any) -> None:
        code = """
          const pages = [
            { results: [{ log: 'a', offset: 0 }, { log: 'b', offset: 0 }], next: 'one', searched_bytes: 5, total_bytes: 10 },
            { results: [{ log: 'b', offset: 0 }, { log: 'b', offset: 9 }], next: null, searched_bytes: 10, total_bytes: 10 },
          ];
          const asked = [];
          window.fetch = async (address) => {
            asked.push(new URL(address, location).searchParams.get('cursor'));
            return new Response(JSON.stringify(pages[asked.length - 1]));
          };
          const search = new m.Search({ url: '/search/', onChange() {} });
          search.start({ q: 'x' });
          while (search.state === 'busy') await new Promise((resume) => setTimeout(resume, 5));
          const hits = search.hits.map(({ log, offset }) => `${log}${offset}`);
          return { asked, hits, state: search.state, share: search.share };
        """
        assert run(tab, "search", code) == {
            "asked": ["", "one"],
            "hits": ["a0", "b0", "b9"],
            "state": "done",
            "share": 1,
        }

    def test_a_refusal_is_told_in_the_hub_s_words(self, tab: Any) -> None:
        code = """
          window.fetch = async () => new Response(JSON.stringify({ detail: 'q: is empty' }), { status: 400 });
          const search = new m.Search({ url: '/search/', onChange() {} });
          search.start({ q: '' });
          while (search.state === 'busy') await new Promise((resume) => setTimeout(resume, 5));
          return [search.state, search.error];
        """
        assert run(tab, "search", code) == ["failed", "q: is empty"]
