"""A run, and what can be done with it."""

from __future__ import annotations

import html
import math
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from trainhub_sdk.addresses import escape
from trainhub_sdk.api_connection import ApiConnection
from trainhub_sdk.errors import NotFound, RunFailed, TrainHubError
from trainhub_sdk.log_reader import LogText, follow_logs, read_logs
from trainhub_sdk.models import ModelVersion
from trainhub_sdk.records.runs import Finding, OutputFile, RunCheckpoint, RunEvent, RunLog, RunRecord
from trainhub_sdk.states import COMPLETED, is_final
from trainhub_sdk.transfers import download

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 5.0


class Run(RunRecord):
    """The fields are those of the API, as of the last `refresh`. `findings`: the warnings about the spec that
    came with its submission."""

    api: ApiConnection
    findings: list[Finding]

    @classmethod
    def of(cls, api: ApiConnection, data: dict[str, Any]) -> Run:
        run = cls.from_json(data)
        run.api = api
        run.findings = [Finding.from_json(finding) for finding in data.get("findings") or ()]
        return run

    @property
    def url(self) -> str:
        """The address of its page."""
        return f"{self.api.url}/runs/{self.number}/"

    @property
    def is_final(self) -> bool:
        """Whether it has ended, as of the last `refresh`."""
        return is_final(self.state)

    def refresh(self) -> Run:
        """Fetches all fields anew. Returns the run."""
        self.update(self.api.get(self._path()))
        return self

    def wait(
        self,
        timeout_s: float | None = None,
        *,
        show_output: bool = False,
        raise_on_error: bool = True,
        out: IO[str] | None = None,
    ) -> Run:
        """Returns when the run has ended; with `show_output` the log of its first rank is written to `out`
        meanwhile, by default to sys.stdout. Interrupting it does not stop the run. Raises RunFailed if it has
        failed or was canceled, and TimeoutError."""
        end = math.inf if timeout_s is None else time.monotonic() + timeout_s
        if show_output:
            for part in follow_logs(self, deadline=end):
                print(part.text, end="", flush=True, file=out or sys.stdout)
        pause = FIRST_PAUSE_S
        while not self.refresh().is_final:
            if time.monotonic() + pause > end:
                raise TimeoutError(f"Run {self.number} is {self.state} after {timeout_s:g} s: {self.url}")
            time.sleep(pause)
            pause = min(pause * 1.5, LONGEST_PAUSE_S)
        if raise_on_error and self.state != COMPLETED:
            raise RunFailed(self.explain(), self)
        return self

    def explain(self) -> str:
        """Returns why the run is in its state, and what to do if it has failed."""
        sentence = f"Run {self.number} is {self.state}."
        if self.sentence:
            sentence = f"Run {self.number} is {self.state}: {self.sentence}"
        if self.cause is None:
            return sentence
        line = "" if self.cause.line == self.sentence else f"\n{self.cause.line}"
        return f"{sentence}{line}\nWhat to do: {self.cause.remedy}"

    def cancel(self) -> Run:
        """Asks the hub to stop it. Repeating this has no effect."""
        self.api.call("POST", f"{self._path()}cancel/", {})
        return self.refresh()

    def logs(
        self, *, follow: bool = False, rank: int | None = None, last_lines: int | None = None
    ) -> Iterator[str]:
        """Yields the text of the log of `rank`, by default the first one; with `follow` until the run has
        ended. `last_lines`: begins with so many of the lines that it has now."""
        read = follow_logs if follow else read_logs
        return (part.text for part in read(self, rank, last_lines=last_lines))

    def all_logs(self, *, follow: bool = False, last_lines: int | None = None) -> Iterator[LogText]:
        """Yields the text of the logs of all ranks, each part with its rank."""
        read = follow_logs if follow else read_logs
        return read(self, every_rank=True, last_lines=last_lines)

    def log_list(self) -> list[RunLog]:
        """Returns the logs of the newest attempt."""
        return [RunLog.from_json(log) for log in self.api.get(f"{self._path()}logs/")["logs"]]

    def metrics(self) -> dict[str, Any]:
        """Returns for each metric what the hub says about it: its `last`, `min` and `max` value, and the
        number of points."""
        return {metric["key"]: metric for metric in self.api.get(f"{self._path()}metrics/")["metrics"]}

    def metric_points(self, *keys: str) -> Any:
        """Returns all points of the metrics, by default of all, as a pandas.DataFrame with the columns
        metric, step, time and value; without pandas as a list of such dicts."""
        return _table(b"".join(self.metrics_csv(*keys)).decode())

    def metrics_csv(self, *keys: str) -> Iterator[bytes]:
        """Yields all points of the metrics, by default of all, as CSV."""
        query = {"keys": ",".join(keys) or None}
        yield from self.api.open("GET", f"{self._path()}metrics.csv", query=query).pieces()

    def events(self) -> list[RunEvent]:
        """Returns what has happened to it, oldest first."""
        return [RunEvent.from_json(event) for event in self.api.get(f"{self._path()}events/")]

    def checkpoints(self) -> list[RunCheckpoint]:
        """Returns the checkpoints that are kept, or being collected, oldest first."""
        return [RunCheckpoint.from_json(row) for row in self.api.get(f"{self._path()}checkpoints/")]

    def files(self) -> list[OutputFile]:
        """Returns the files that the newest attempt has left."""
        answer = self.api.get(f"{self._path()}outputs/")
        return [OutputFile.from_json(file) for file in answer["outputs"]]

    def download(
        self, path: str, to: str | Path = "", on_bytes: Callable[[int], None] = lambda _: None
    ) -> Path:
        """Downloads a file that the run has left to the file `to`, by default one of its name in the current
        folder; `on_bytes` gets the length of each piece that arrives. Returns that file. Raises NotFound."""
        files = {file.path: file for file in self.files()}
        plain = path[2:] if path.startswith("./") else path
        file = files.get(plain) or files.get(plain.replace("outputs/", "", 1))
        if file is None:
            for removal in self.removed:
                if removal.kind == "outputs":
                    raise NotFound(410, removal.sentence, {})
            raise NotFound(404, f"Run {self.number} has no file {path}: {_nearest(path, files)}", {})
        return download(self.api, file.url, Path(to or Path(path).name), file.sha256, on_bytes)

    def register_model(
        self, name: str, path: str, *, description: str = "", tags: dict[str, str] | None = None
    ) -> ModelVersion:
        """Registers a file or folder that the run has left as the next version of the model. Returns the
        version. Raises HubRefused."""
        body: dict[str, Any] = {"run": self.id, "path": path, "description": description, "tags": tags or {}}
        data = self.api.call("POST", f"/api/v1/models/{escape(name)}/versions/", body)
        return ModelVersion.of(self.api, data)

    def tag(self, key: str, value: str = "") -> None:
        """Gives it a tag, in place of one with the same key."""
        self.api.call("PUT", f"{self._path()}tags/{escape(key)}/", {"value": value})
        self.tags = {**self.tags, key: value}

    def _path(self) -> str:
        return f"/api/v1/runs/{self.id}/"

    def __repr__(self) -> str:
        return f"<Run {self.number} {self.display_name!r}: {self.state}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the state as of now, in a table with a link to the page."""
        try:
            self.refresh()
            note = ""
        except TrainHubError as error:
            note = f" <i>{html.escape(str(error))}</i>"
        values = "".join(
            f"<tr><td>{html.escape(key)}</td><td>{html.escape(str(metric.get('last')))}</td></tr>"
            for key, metric in (self.metrics() if not note else {}).items()
        )
        name = html.escape(self.display_name or f"Run {self.number}")
        link = f'<a href="{html.escape(self.url)}" target="_blank">{name}</a>'
        sentence = html.escape(self.sentence or self.cause_line)
        return f"<table><tr><th>{link}</th><td>{self.state} {sentence}{note}</td></tr>{values}</table>"


def _nearest(path: str, files: dict[str, Any]) -> str:
    if not files:
        return "it has left none."
    same = [name for name in files if Path(name).name == Path(path).name]
    return f"is {same[0]} meant?" if same else f"it has {', '.join(sorted(files)[:5])}."


def _table(text: str) -> Any:
    import csv
    import io

    try:
        import pandas  # type: ignore[import-untyped]
    except ImportError:
        rows = list(csv.DictReader(io.StringIO(text)))
        return [{**row, "value": float(row["value"]), "step": int(row["step"])} for row in rows]
    return pandas.read_csv(io.StringIO(text))
