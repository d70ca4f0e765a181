"""S6: nothing tells a template that data is markup already, and no script writes data as markup.

Each exception stands here with its reason; a new one has to be added by hand, and so is seen by whoever
reviews it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hub import PROJECT

PACKAGES = ("clusters", "environments", "jobs", "live", "registry", "tracking", "trainhub", "workspaces")
UNSAFE_IN_TEMPLATES = re.compile(
    r"\|\s*safe(seq)?\b|autoescape\s+off|<[^<>]*\s[\w:-]+=(\{\{|'[^'<>]*\{\{(?! csrf_token))"
)
"""Filters and tags that end escaping, and values that stand in an attribute without double quotes."""
UNSAFE_IN_PYTHON = re.compile(
    r"\bmark_safe\b|\bSafe(String|Text|Data)\s*\(|\bformat_html(_join)?\b|__html__"
    r"|is_safe\s*=\s*True|\bHTMLResponse\b|\bhtml_safe\b"
)
UNSAFE_IN_SCRIPTS = re.compile(
    r"\b(innerHTML|outerHTML|srcdoc)\b\s*\+?=|insertAdjacentHTML|document\.write|\beval\(|new "
    r"Function|setAttribute\(\"(style|on)"
)
REVIEWED_PYTHON = {
    (
        "workspaces/templatetags/components.py",
        "SafeString(",
    ): "The content of a template's block, which the template has escaped, with its white space joined.",
    (
        "tracking/notes.py",
        "mark_safe",
    ): "Markdown, cleaned by nh3 on the line before it is marked; tests/tracking/test_notes.py.",
    (
        "workspaces/authentication/refused_page.py",
        "HTMLResponse",
    ): "The sign-in page, rendered by its template; what the visitor sent is escaped where it is filled in.",
    (
        "tracking/artifacts/file_views.py",
        "HTMLResponse",
    ): "The frame of a figure, with its JSON escaped, or of a page of a run: a sandbox without origin.",
    (
        "tracking/tensorboard/proxy.py",
        "HTMLResponse",
    ): "A fixed text, which says that TensorBoard has ended.",
    (
        "tracking/history/row_markup.py",
        "mark_safe",
    ): "A row that the hub's own template has escaped, with a digest put in.",
    (
        "trainhub/documentation/rendering.py",
        "mark_safe",
    ): "The project's own documents, from Markdown whose HTML is shown as text.",
    (
        "trainhub/sdk_downloads/routes.py",
        "HTMLResponse",
    ): "What a template has rendered, which escapes the names of packages and the lines to copy.",
    (
        "workspaces/http/outage_answers.py",
        "HTMLResponse",
    ): "What a template has rendered, of sentences of the hub's own.",
    ("jobs/templatetags/formats.py", "format_html"): "Escapes what it puts between the tags.",
    ("jobs/templatetags/formats.py", "format_html_join"): "Escapes what it joins.",
}
REVIEWED_SCRIPTS = {
    ("static/js/log/virtual-rows.js", "innerHTML ="): "A constant, to measure one line of a log.",
    ("static/js/curves/group.js", "innerHTML ="): "A constant; texts are set by textContent.",
    ("static/js/charts/grid.js", "innerHTML ="): "A constant; texts are set by textContent.",
    (
        "static/js/charts/panel.js",
        "innerHTML =",
    ): "A constant but for a number that the module counts itself.",
    (
        "static/js/history/table.js",
        "innerHTML =",
    ): "Rows that the hub's own template has escaped, as htmx takes them.",
    (
        "static/js/history/changed-rows.js",
        "innerHTML =",
    ): "Rows that the hub's own template has escaped, put into a template element.",
    (
        "static/js/history/row-tools.js",
        "innerHTML =",
    ): "A constant, and the page's own template with the number of a run.",
}
Found = tuple[str, str]


def matches(pattern: re.Pattern[str], paths: Iterator[Path]) -> set[Found]:
    """Each match of `pattern` in `paths`, as the file's name below the project and the text that matched."""
    return {
        (str(path.relative_to(PROJECT)), found.group().strip())
        for path in paths
        for found in pattern.finditer(path.read_text())
    }


def python_files() -> Iterator[Path]:
    for package in PACKAGES:
        yield from (path for path in (PROJECT / package).rglob("*.py") if "migrations" not in path.parts)


def test_no_template_ends_the_escaping_of_data() -> None:
    templates = [*(PROJECT / "templates").rglob("*.html"), *(PROJECT / "templates").rglob("*.txt")]
    assert len(templates) > 100, "the templates have moved: this test reads none"
    assert matches(UNSAFE_IN_TEMPLATES, iter(templates)) == set()


def test_no_python_code_marks_data_as_markup() -> None:
    found = {(name, text) for name, text in matches(UNSAFE_IN_PYTHON, python_files())}
    assert found == set(REVIEWED_PYTHON), "review each difference: data must be escaped by the template"


def test_no_script_writes_data_as_markup() -> None:
    scripts = (PROJECT / "static" / "js").rglob("*.js")
    assert matches(UNSAFE_IN_SCRIPTS, scripts) == set(REVIEWED_SCRIPTS)


@pytest.mark.parametrize(
    "text",
    [
        "{{ a|safe }}",
        "{{ a | safe }}",
        "{{ a|safeseq }}",
        "{% autoescape off %}",
        "<a href={{ a }}>",
        "<a b='{{ a }}'>",
    ],
)
def test_the_search_finds_each_way_to_end_escaping(text: str) -> None:
    assert UNSAFE_IN_TEMPLATES.search(text)


def test_no_fragment_keeps_its_data_in_a_script() -> None:
    """htmx takes script elements out of whatever it swaps in, so a chart in such a fragment would find no
    data."""
    wrong = [
        path.name for path in (PROJECT / "templates").rglob("*.html") if "json_script" in path.read_text()
    ]
    assert not wrong
