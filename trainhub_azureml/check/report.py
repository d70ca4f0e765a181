"""`python -m trainhub_azureml check PATH... [--json]`."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence

from trainhub_azureml.check.pins import check_pins, lines_of_file
from trainhub_azureml.check.script_check import (
    ALIAS,
    DIFFERS,
    MAPPING,
    PIN,
    REFUSED,
    UNREADABLE,
    WORKS,
    CallFinding,
    findings_of,
)
from trainhub_azureml.check.source_reader import SourceText, read_sources

CLEAN, BLOCKED, WRONG_USAGE = 0, 1, 2
# What has to be changed before the script can run.
_BLOCKING = (REFUSED, PIN, ALIAS, UNREADABLE)
_TITLES = {
    REFUSED: "Not offered",
    PIN: "Packages that cannot be installed any more",
    ALIAS: "Names that NumPy has removed",
    MAPPING: "Names for trainhub-azureml.toml",
    DIFFERS: "Works differently",
    UNREADABLE: "Cannot be read",
}
_MAX_PLACES = 3


def run_check(arguments: Sequence[str]) -> int:
    """Prints what of the scripts works. Returns 0 if all does, perhaps differently; 1 if something has to be
    changed first; 2 for wrong arguments."""
    paths = [argument for argument in arguments if not argument.startswith("--")]
    options = {argument for argument in arguments if argument.startswith("--")}
    if not paths or options - {"--json"}:
        print("usage: python -m trainhub_azureml check PATH... [--json]", file=sys.stderr)
        return WRONG_USAGE
    sources = list(read_sources(paths))
    findings = [finding for source in sources for finding in check_source(source)]
    if "--json" in options:
        _print_json(sources, findings)
    else:
        _print_text(sources, findings)
    return BLOCKED if any(finding.level in _BLOCKING for finding in findings) else CLEAN


def check_source(source: SourceText) -> Iterable[CallFinding]:
    """Returns the findings of a script, a notebook or a list of packages."""
    if source.problem:
        return [CallFinding(source.path, 0, UNREADABLE, source.path, source.problem)]
    if source.tree is not None:
        return findings_of([(source.path, source.tree)])
    if not source.path.endswith(".txt") and "dependencies:" not in source.text:
        return []  # another kind of YAML
    try:
        lines = lines_of_file(source.text, source.path)
    except ValueError as error:
        return [CallFinding(source.path, 0, UNREADABLE, source.path, str(error))]
    return [CallFinding(source.path, 0, PIN, line, reason) for line, reason in check_pins(lines)]


def _print_json(sources: Sequence[SourceText], findings: Sequence[CallFinding]) -> None:
    for finding in findings:
        print(json.dumps(finding._asdict()))
    blocked = {finding.path for finding in findings if finding.level in _BLOCKING}
    print(json.dumps({"files": len(sources), "clean": len(sources) - len(blocked)}))


def _print_text(sources: Sequence[SourceText], findings: Sequence[CallFinding]) -> None:
    for level, title in _TITLES.items():
        rows = [finding for finding in findings if finding.level == level]
        if not rows:
            continue
        print(f"{title}:")
        for (call, sentence), count in Counter((row.call, row.sentence) for row in rows).most_common():
            places = [
                f"{row.path}:{row.line}" for row in rows if (row.call, row.sentence) == (call, sentence)
            ]
            more = f" and {count - _MAX_PLACES} more" if count > _MAX_PLACES else ""
            print(f"  {call}: {sentence}" if sentence else f"  {call}")
            print(f"    {', '.join(places[:_MAX_PLACES])}{more}")
    calls = Counter(finding.call for finding in findings if finding.level == WORKS)
    if calls:
        print(f"Works: {', '.join(f'{call} ({count})' for call, count in calls.most_common())}")
    blocked = {finding.path for finding in findings if finding.level in _BLOCKING}
    print(f"{len(sources) - len(blocked)} of {len(sources)} files need no change.")
