"""docs/failures.md tells exactly what the table in code knows: what is below the mark is `table()`.

Written anew by: manage.py shell -c "from tests.jobs.causes.test_documented import write; write()"
"""

from __future__ import annotations

import re
from pathlib import Path

from jobs.causes.failures import FAILURES, GROUPS, LINKS
from jobs.causes.reasons import REMEDIES
from jobs.states import Reason, RunState

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "failures.md"
# Found by how the ranks ended, not by a line of a log.
WITHOUT_PATTERN = {"out_of_memory", "hung", "left_early", "never_arrived"}
MARK = "<!-- below: from jobs/causes/failures -->\n"


def table() -> str:
    parts = []
    for title, rows in GROUPS.items():
        lines = [
            f"\n## {title}\n",
            "| kind | what is seen | what it means | what to do |",
            "|---|---|---|---|",
        ]
        for row in rows:
            meaning, remedy = (text.format(name=row.unnamed or "…") for text in (row.meaning, row.remedy))
            lines.append(f"| `{row.kind}` **{row.title}** | {row.symptoms} | {meaning} | {remedy} |")
        parts.append("\n".join(lines) + "\n")
    return "".join(parts)


def write() -> None:
    DOCUMENT.write_text(DOCUMENT.read_text().split(MARK)[0] + MARK + table())


def test_the_document_is_what_the_code_knows() -> None:
    assert DOCUMENT.read_text().split(MARK)[1] == table()


def test_every_kind_has_one_row_and_every_sentence_is_one() -> None:
    kinds = [row.kind for row in FAILURES]
    assert len(set(kinds)) == len(kinds)
    for row in FAILURES:
        assert row.link in LINKS
        assert row.pattern or row.signals or row.kind in WITHOUT_PATTERN, row.kind
        for sentence in (row.meaning, row.remedy):
            assert re.fullmatch(r"(?:[A-Z{`]|torch).*\.", sentence, re.DOTALL), (row.kind, sentence)


def test_every_reason_of_a_failure_has_a_remedy() -> None:
    waiting = {Reason.NONE, Reason.NOT_FITTING_YET}
    failures = {reason for reason in Reason if reason.final_state is RunState.FAILED} - waiting
    assert failures == set(REMEDIES)
