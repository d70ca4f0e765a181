"""What is not as it was listed, for a run that goes on with what is there now."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trainhub_node.data.account_process import Record
    from trainhub_node.supervisor.gang import Gang

# So many files the preparation log names, and so many of them the warning on the run's page.
MAX_LOGGED, MAX_NAMED = 100, 3
MAX_NAME = 200


class ChangedFiles:
    """`count`: how many files are not as they were listed; `first`: (path, whether it is gone) of some."""

    def __init__(self) -> None:
        self.count = 0
        self.first: list[tuple[str, bool]] = []

    def add(self, path: str, *, is_absent: bool) -> None:
        self.count += 1
        if len(self.first) < MAX_LOGGED:
            self.first.append((path, is_absent))

    def to_json(self) -> Record:
        return {"count": self.count, "first": self.first}

    def add_json(self, record: Record) -> None:
        """Adds what another process has counted (see `to_json`)."""
        room = MAX_LOGGED - len(self.first)
        self.count += record["count"]
        self.first += [(path, is_absent) for path, is_absent in record["first"][:room]]


def report_changes(gang: Gang, name: str, changes: ChangedFiles) -> None:
    """Tells the preparation log, the run's page and its lineage that the input has other files than its
    version, if it has."""
    if not changes.count:
        return
    for path, is_absent in changes.first:
        gang.log(f"Input {name}: {_words(path, is_absent)}.")
    first = ", ".join(_words(*item) for item in changes.first[:MAX_NAMED])
    more = changes.count - min(len(changes.first), MAX_NAMED)
    files = "1 file is" if changes.count == 1 else f"{changes.count:,} files are"
    sentence = (
        f"Input {name} is not exactly its version: on node {gang.terms['node']} {files} not as listed "
        f"({first}{f' and {more:,} more' if more else ''}). The run reads what is there now."
    )
    gang.log(sentence)
    gang.note_changed_input(name)
    gang.warn(sentence)


def _words(path: str, is_absent: bool) -> str:
    name = path if path.isprintable() else ascii(path)
    short = name if len(name) <= MAX_NAME else f"{name[:MAX_NAME]}…"
    return f"{short} {'is gone' if is_absent else 'was changed'}"
