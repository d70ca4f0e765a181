"""Measures names, folders and form of the project's own sources: `python -m bench.house`.

It prints a table and exits 1 if a figure is past its limit. It reads text and syntax trees only and imports
nothing of the product. "Code" is the product's packages without migrations and files of fewer than 3 lines.
The second column shows the same for the SDK and the command line, which people install beside other software:
their classes are called as those of the hub, so they are compared among themselves. The third column shows
tests, benchmarks, examples and the simulator. Limits on names hold for the first two, those on form
(`everywhere`) for all.

`--list` names every offender as `path:line: name`, `--list jobs` those below a path, and `--figure classes`
those of one figure.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.support import house_figures as measures
from bench.support.house_figures import Measurement, Offender, Source

ROOT = Path(__file__).resolve().parent.parent
PRODUCT = (
    "trainhub_launch",
    "trainhub_node",
    "live",
    "workspaces",
    "clusters",
    "environments",
    "datastores",
    "jobs",
    "tracking",
    "registry",
    "trainhub",
)
CLIENT = ("trainhub_sdk", "trainhub_cli", "trainhub_azureml")
TOOLS = ("tests", "bench", "examples", "simulator")
MAX_TEMPLATE_LINE = 160


@dataclass(frozen=True, slots=True)
class Figure:
    """`limit` is the largest permitted value, or the smallest one where `at_least` is set."""

    key: str
    title: str
    limit: float
    measure: Callable[[Sequence[Source]], Measurement]
    digits: int = 1
    at_least: bool = False
    everywhere: bool = False
    of_client: bool = True
    """False: for what hands on JSON of the hub as it came there is no limit."""

    def holds(self, value: float) -> bool:
        return value >= self.limit if self.at_least else value <= self.limit

    def limit_text(self) -> str:
        return f"{'>=' if self.at_least else '<='} {self.limit:g}"


FIGURES = (
    Figure("participles", "participles in identifiers, per 1,000 lines", 3, measures.participles),
    Figure("classes", "class names in more than one module, %", 1.5, measures.shared_classes),
    Figure("functions", "public function names in more than one module, %", 8, measures.shared_functions),
    Figure("gerunds", "modules named ...ing.py, %", 3, measures.gerund_modules),
    Figure("folder", "modules in the widest folder", measures.MAX_FOLDER, measures.widest_folder, digits=0),
    Figure("any", "Any, per 1,000 lines", 5, measures.any_types, of_client=False),
    Figure("comments", "comments, % of lines", 2.5, measures.comment_share, at_least=True, of_client=False),
    Figure(
        "lines", f"Python lines over {measures.MAX_LINE} columns", 0, measures.wide_lines, 0, everywhere=True
    ),
    Figure(
        "long-functions",
        f"functions over {measures.MAX_FUNCTION} lines",
        0,
        measures.long_functions,
        0,
        everywhere=True,
    ),
    Figure("long-files", f"files over {measures.MAX_FILE} lines", 0, measures.long_files, 0, everywhere=True),
)


@dataclass(frozen=True, slots=True)
class FigureRow:
    """One line of the table. `client`: the value for the SDK and the command line; `tools`: that for tests,
    benchmarks, examples and the simulator."""

    key: str
    title: str
    product: str
    client: str
    tools: str
    limit: str
    holds: bool
    offenders: Sequence[Offender]


def source_rows(root: Path) -> list[FigureRow]:
    sources = [measures.read_sources(root, packages) for packages in (PRODUCT, CLIENT, TOOLS)]
    rows = []
    for figure in FIGURES:
        code, client, tools = (figure.measure(part) for part in sources)
        code_value, client_value, tools_value = (
            f"{one.value:,.{figure.digits}f}" for one in (code, client, tools)
        )
        limited = [code, *([client] if figure.of_client else ()), *([tools] if figure.everywhere else ())]
        holds = all(figure.holds(one.value) for one in limited)
        offenders = [*code.offenders, *client.offenders, *tools.offenders]
        texts = (figure.key, figure.title, code_value, client_value, tools_value, figure.limit_text())
        rows.append(FigureRow(*texts, holds, offenders))
    return rows


def template_rows(root: Path) -> list[FigureRow]:
    widths = [
        (path, number, len(line))
        for path in sorted((root / "templates").rglob("*.html"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
    ]
    longest = max((width for _, _, width in widths), default=0)
    wide = [
        Offender(str(path.relative_to(root)), number, f"{width} columns")
        for path, number, width in widths
        if width > MAX_TEMPLATE_LINE
    ]
    title = f"template lines over {MAX_TEMPLATE_LINE} columns"
    return [
        FigureRow(
            "longest-template",
            "longest template line",
            f"{longest:,}",
            "",
            "",
            f"<= {MAX_TEMPLATE_LINE}",
            not wide,
            (),
        ),
        FigureRow("templates", title, f"{len(wide):,}", "", "", "<= 0", not wide, wide),
    ]


def print_table(rows: Sequence[FigureRow]) -> None:
    print(f"{'':<50} {'code':>8} {'SDK, CLI':>9} {'tests, tools':>13} {'limit':>7}")
    for row in rows:
        verdict = "" if row.holds else "  past its limit"
        print(f"{row.title:<50} {row.product:>8} {row.client:>9} {row.tools:>13} {row.limit:>7}{verdict}")


def print_offenders(rows: Sequence[FigureRow], below: str) -> None:
    for row in rows:
        offenders = [one for one in row.offenders if not below or Path(one.path).is_relative_to(below)]
        if offenders:
            print(f"== {row.title}: {len(offenders):,}")
            print(*offenders, sep="\n")


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.house", description="Measures names and form of the sources."
    )
    parser.add_argument(
        "--list", nargs="?", const="", metavar="PATH", help="name every offender, or those below PATH"
    )
    keys = [*(figure.key for figure in FIGURES), "templates"]
    parser.add_argument("--figure", choices=keys, help="measure this figure only")
    options = parser.parse_args()
    rows = [row for row in [*source_rows(ROOT), *template_rows(ROOT)] if options.figure in (None, row.key)]
    if options.list is not None:
        print_offenders(rows, options.list)
    print_table(rows)
    return 0 if all(row.holds for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
