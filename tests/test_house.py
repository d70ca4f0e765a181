"""The measures of `bench.house` count what they say, and the sources are within each of its limits."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import house
from bench.support import house_figures

MODULE = '''"""Nothing to see."""

from typing import Any


class Asked:
    kept_for = 3  # seconds, as the wire format prescribes


def listed(known_hosts: Any, last_seen: int, *, wanted: int = 0) -> int:
    return wanted + last_seen  # noqa: S101
'''


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("jobs/telling.py", "jobs/asked.py", "jobs/migrations/telling.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(MODULE)
    (tmp_path / "jobs/__init__.py").write_text("x = 1\n")
    return tmp_path


@pytest.fixture
def sources(root: Path) -> list[house_figures.Source]:
    return house_figures.read_sources(root, ["jobs"])


def test_migrations_and_nearly_empty_files_are_left_out(sources: list[house_figures.Source]) -> None:
    assert [source.path for source in sources] == ["jobs/asked.py", "jobs/telling.py"]


def test_each_use_of_a_banned_word_counts_and_standard_terms_do_not(
    sources: list[house_figures.Source],
) -> None:
    offenders = house_figures.participles(sources[:1]).offenders
    assert sorted(str(one) for one in offenders) == [
        "jobs/asked.py:10: wanted",
        "jobs/asked.py:11: wanted",
        "jobs/asked.py:6: Asked",
        "jobs/asked.py:7: kept_for",
    ]


@pytest.mark.parametrize("name", ["HTTP_404_NOT_FOUND", "NotFound", "known_hosts", "foundation", "shownotes"])
def test_a_word_inside_another_word_is_not_banned(name: str) -> None:
    assert house_figures.banned_words(name) == []


@pytest.mark.parametrize("name", ["found", "_found_runs", "FOUND", "RunFound", "let_go", "was_let_go"])
def test_a_banned_word_is_recognised_in_each_spelling(name: str) -> None:
    assert len(house_figures.banned_words(name)) == 1


def test_names_in_two_modules_are_shared(sources: list[house_figures.Source]) -> None:
    assert house_figures.shared_classes(sources).value == 100
    assert house_figures.shared_functions(sources).value == 100
    assert house_figures.shared_classes(sources[:1]).value == 0


def test_modules_comments_and_any_are_counted(sources: list[house_figures.Source]) -> None:
    assert house_figures.gerund_modules(sources).value == 50
    assert house_figures.widest_folder(sources).value == 2
    assert house_figures.comment_share(sources).value == pytest.approx(100 * 2 / 22)
    assert house_figures.any_types(sources).value == pytest.approx(1000 * 2 / 22)


def test_wide_templates_are_named(root: Path) -> None:
    (root / "templates").mkdir()
    (root / "templates/page.html").write_text(f"<p>\n{'x' * 161}\n")
    longest, wide = house.template_rows(root)
    assert (longest.product, longest.holds, wide.holds) == ("161", False, False)
    assert [str(one) for one in wide.offenders] == ["templates/page.html:2: 161 columns"]


def test_every_figure_is_within_its_limit() -> None:
    rows = [*house.source_rows(house.ROOT), *house.template_rows(house.ROOT)]
    past = [f"{row.title}: {row.product}, limit {row.limit}" for row in rows if not row.holds]
    assert past == [], "run python -m bench.house --list"


def test_the_packages_are_those_of_the_architecture() -> None:
    folders = {path.parent.name for path in house.ROOT.glob("*/__init__.py")}
    assert folders == {*house.PRODUCT, *house.CLIENT, *house.TOOLS} - {"examples"}
