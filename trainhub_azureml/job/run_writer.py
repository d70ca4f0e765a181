"""What one process has logged to a run, on its way to the hub in the forms that the run's page shows."""

from __future__ import annotations

import io
import json
import sys
import time
from collections.abc import Callable, Mapping
from typing import IO, TYPE_CHECKING, Any

from trainhub_azureml.job.tag_names import KIND_TAG, NAME_TAG, TEXT_TAG, TEXTS_TAG
from trainhub_azureml.notices import warn
from trainhub_sdk.job.metric_names import metric_key
from trainhub_sdk.job.metric_values import number_of, rows_of, text_of
from trainhub_sdk.job.sender import Metric, Sender, Tag

if TYPE_CHECKING:
    from trainhub_sdk.job.hub_calls import HubCalls
    from trainhub_sdk.job.metric_values import Json

MAX_TAG = 8000
FILE_PAUSES_S = (1.0, 2.0, 5.0, 10.0, 20.0, 20.0)
TABLES, IMAGES = "azureml/tables", "azureml/images"
# Tables are stored whole each time, so not for every row.
TABLE_PERIOD_S = 15.0


class _TableRows:
    """The rows that were logged under one name. `stored`: how many of them the hub has."""

    def __init__(self) -> None:
        self.columns: list[str] = []
        self.rows: list[list[Json]] = []
        self.stored = 0

    def add(self, names: list[str], rows: list[list[Json]]) -> None:
        for name in names:
            if name not in self.columns:
                self.columns.append(name)
        places = [self.columns.index(name) for name in names]
        for row in rows:
            cells: list[Json] = [None] * len(self.columns)
            for place, cell in zip(places, row):
                cells[place] = cell
            self.rows.append(cells)

    def to_json(self) -> bytes:
        width = len(self.columns)
        data = [row + [None] * (width - len(row)) for row in self.rows]
        return json.dumps({"columns": self.columns, "data": data}).encode()


class RunWriter:
    """Writes to the run `run_id`. `rank`: of this process; all ranks but the first log under names of their
    own, because they would mix their numbers into one curve."""

    def __init__(self, connect: Callable[[], HubCalls], run_id: str, rank: int = 0) -> None:
        self.run_id = run_id
        self._connect = connect
        self._sender = Sender(self._calls, run_id)
        self._rank = rank
        self._open_calls: HubCalls | None = None
        self._steps: dict[str, int] = {}
        self._keys: dict[str, str] = {}
        self._texts: dict[str, list[str]] = {}
        self._tables: dict[str, _TableRows] = {}
        self._tables_stored_at = time.monotonic()
        self._images = 0

    def log(self, name: str, value: Any, step: int | None = None) -> None:
        number = number_of(value)
        if number is None:
            self._log_text(name, text_of(value))
        else:
            self._log_number(self._key(name), number, step)

    def mark_list(self, name: str) -> None:
        """Keeps that the values of this name are a list, also if there is only one."""
        self._mark(self._key(name), "list")

    def add_rows(self, name: str, columns: Mapping[str, Any], step: int | None = None) -> None:
        """Numbers become a curve for each column, and the whole becomes a table."""
        key, rows = self._key(name), rows_of(columns)
        if key not in self._tables:
            self._tables[key] = _TableRows()
            self._mark(key, "table")
        self._tables[key].add([str(column) for column in columns], rows)
        for row in rows:
            for column, cell in zip(columns, row):
                number = None if isinstance(cell, str) else number_of(cell)
                if number is not None:
                    self._log_number(metric_key(f"{key}/{column}"), number, step)
        if time.monotonic() - self._tables_stored_at > TABLE_PERIOD_S:
            self._store_tables()

    def add_image(self, name: str, content: bytes, suffix: str) -> None:
        key = self._key(name)
        path = f"{IMAGES}/{key}_{int(time.time() * 1000)}_{self._rank}_{self._images}{suffix}"
        self._images += 1
        self._mark(key, "image", path)
        self._store(path, content)

    def set_tag(self, key: str, value: str) -> None:
        self._sender.add(Tag(key, value[-MAX_TAG:]))

    def put_file(self, path: str, content: IO[bytes]) -> None:
        """Stores a file at once; a hub that is away is asked again for a minute. Raises TrainHubError if it
        does not take the file."""
        from trainhub_sdk.errors import HubUnreachable

        if not content.seekable():
            content = io.BytesIO(content.read())
        size = content.seek(0, io.SEEK_END)
        for pause_s in (*FILE_PAUSES_S, None):
            content.seek(0)
            try:
                self._calls().put_file(self.run_id, path, content, size)
                return
            except HubUnreachable:
                if pause_s is None:
                    raise
                time.sleep(pause_s)

    def flush(self, timeout_s: float = 60.0) -> bool:
        """Returns whether everything is sent, after `timeout_s` at the latest."""
        self._store_tables()
        return self._sender.flush(timeout_s)

    def _calls(self) -> HubCalls:
        if self._open_calls is None:
            self._open_calls = self._connect()
        return self._open_calls

    def _key(self, name: str) -> str:
        name = str(name)
        if name not in self._keys:
            key = metric_key(name)
            if self._rank:
                key = f"rank_{self._rank}/{key}"
                warn(f"What rank {self._rank} logs has the names rank_{self._rank}/NAME.")
            if key != name and not self._rank:
                self._sender.add(Tag(f"{NAME_TAG}{key}", name[:MAX_TAG]))
            self._keys[name] = key
        return self._keys[name]

    def _log_number(self, key: str, number: float, step: int | None) -> None:
        following = self._steps.get(key, 0)
        chosen = following if step is None else int(step)
        self._steps[key] = max(following, chosen) + 1
        self._sender.add(Metric(key, number, chosen, int(time.time() * 1000)))

    def _log_text(self, name: str, text: str) -> None:
        key = self._key(name)
        texts = self._texts.setdefault(key, [])
        texts.append(text)
        self.set_tag(f"{TEXT_TAG}{key}", text)
        if len(texts) > 1:
            while len(json.dumps(texts)) > MAX_TAG:
                del texts[0]
            self.set_tag(f"{TEXTS_TAG}{key}", json.dumps(texts))

    def _mark(self, key: str, kind: str, detail: str = "") -> None:
        self.set_tag(f"{KIND_TAG}{key}", f"{kind} {detail}".rstrip())

    def _store_tables(self) -> None:
        self._tables_stored_at = time.monotonic()
        for key, table in self._tables.items():
            if len(table.rows) > table.stored:
                count = len(table.rows)
                if self._store(f"{TABLES}/{key}.json", table.to_json()):
                    table.stored = count

    def _store(self, path: str, content: bytes) -> bool:
        """Stores a file that a training can do without: what fails is reported and goes on."""
        from trainhub_sdk.errors import TrainHubError
        from trainhub_sdk.job.hub_calls import Refused

        try:
            self._calls().put_file(self.run_id, path, content, len(content))
        except (TrainHubError, Refused, OSError) as error:
            print(f"TrainHub: {path} is not stored: {error}", file=sys.stderr, flush=True)
            return False
        return True
