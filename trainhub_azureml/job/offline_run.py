"""What `Run.get_context()` gives to a process that is part of no run: it prints what is logged."""

from __future__ import annotations

import os

from trainhub_azureml.job.image_content import image_content
from trainhub_sdk.job.metric_values import list_of, number_of, rows_of

# Not typing.TYPE_CHECKING: every process of a job imports this.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class _OfflineRun:
    """Scripts recognise it by its class, by its id, or because it has no `experiment`."""

    def __init__(self, parent: _OfflineRun | None = None, name: str = "") -> None:
        import uuid

        self._run_id = f"OfflineRun_{uuid.uuid4()}"
        self.parent = parent
        self.name = self.display_name = name or self._run_id
        self.status = "Running"
        self.tags: dict[str, Any] = {}
        self.properties: dict[str, Any] = {}
        self.input_datasets: dict[str, Any] = {}
        self.output_datasets: dict[str, Any] = {}
        self._metrics: dict[str, list[Any]] = {}
        self._tables: dict[str, dict[str, list[Any]]] = {}

    @property
    def id(self) -> str:
        return self._run_id

    def log(self, name: str, value: Any, description: str = "", step: int | None = None) -> None:
        number = number_of(value)
        self._metrics.setdefault(name, []).append(value if number is None else number)
        print(f"{name}: {value}" if step is None else f"{name}: {value} (step {step})", flush=True)

    def log_list(self, name: str, value: Any, description: str = "") -> None:
        values = list_of(value)
        self._metrics.setdefault(name, []).extend(values)
        print(f"{name}: {values}", flush=True)

    def log_row(self, name: str, description: str | None = None, **columns: Any) -> None:
        self.log_table(name, columns)

    def log_table(self, name: str, value: Mapping[str, Any], description: str = "") -> None:
        table = self._tables.setdefault(name, {})
        for row in rows_of(value):
            for column, cell in zip(value, row):
                table.setdefault(column, []).append(cell)
        print(f"{name}: {dict(value)}", flush=True)

    def log_image(self, name: str, path: Any = None, plot: Any = None, description: str = "") -> None:
        content, _suffix = image_content(path, plot)
        print(f"{name}: an image of {len(content):,} bytes", flush=True)

    def get_metrics(self, name: str | None = None, **_others: Any) -> dict[str, Any]:
        values = {key: list_[0] if len(list_) == 1 else list(list_) for key, list_ in self._metrics.items()}
        values.update(self._tables)
        return values if name is None else {key: value for key, value in values.items() if key == name}

    def tag(self, key: str, value: Any = None) -> None:
        self.tags[key] = value

    def set_tags(self, tags: Mapping[str, Any]) -> None:
        self.tags.update(tags)

    def get_tags(self) -> dict[str, Any]:
        return dict(self.tags)

    def add_properties(self, properties: Mapping[str, Any]) -> None:
        self.properties.update(properties)

    def get_properties(self) -> dict[str, Any]:
        return dict(self.properties)

    def upload_file(self, name: str, path_or_stream: Any, datastore_name: str = "") -> None:
        print(f"{name} is not uploaded: this process is part of no run.", flush=True)

    def upload_files(self, names: Any, paths: Any, **_others: Any) -> None:
        for name in names:
            self.upload_file(name, None)

    def upload_folder(self, name: str, path: Any, datastore_name: str = "") -> None:
        self.upload_file(os.fspath(name), path)

    def get_file_names(self) -> list[str]:
        return []

    def child_run(self, name: str | None = None, **_others: Any) -> _OfflineRun:
        return _OfflineRun(self, name or "")

    def create_children(self, count: int = 1, **_others: Any) -> list[_OfflineRun]:
        return [_OfflineRun(self) for _ in range(count)]

    def get_status(self) -> str:
        return self.status

    def flush(self, timeout_seconds: float = 300) -> None:
        """There is nothing to send."""

    def complete(self, _set_status: bool = True) -> None:
        self.status = "Completed"

    def fail(self, error_details: Any = None, **_others: Any) -> None:
        self.status = "Failed"
        if error_details is not None:
            print(f"The run has failed: {error_details}", flush=True)

    def __enter__(self) -> _OfflineRun:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if error is None:
            self.complete()
        else:
            self.fail(error)

    def __repr__(self) -> str:
        return f"Run(Id: {self._run_id}, Status: {self.status})"
