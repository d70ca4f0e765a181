"""The calls by which scripts log, the same inside a job and from outside."""

from __future__ import annotations

import os
import sys

from trainhub_azureml.exceptions import UserErrorException
from trainhub_azureml.job.image_content import image_content
from trainhub_sdk.job.metric_values import list_of

# Not typing.TYPE_CHECKING: every process of a job imports this.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import TracebackType
    from typing import IO, Any

    from trainhub_azureml.job.run_writer import RunWriter


class RunLogging:
    """What can be logged to a run. Numbers and texts are sent in the background, and none of these calls but
    `upload_file` and `upload_folder` raises because of the hub."""

    def _writer(self) -> RunWriter:
        raise NotImplementedError

    def log(self, name: str, value: Any, description: str = "", step: int | None = None) -> None:
        """Logs a number, a point of the curve `name`, or a text."""
        self._writer().log(name, value, step)

    def log_list(self, name: str, value: Any, description: str = "") -> None:
        writer = self._writer()
        for item in list_of(value):
            writer.log(name, item)
        writer.mark_list(name)

    def log_row(self, name: str, description: str | None = None, **columns: Any) -> None:
        """Adds a row to the table `name`."""
        self._writer().add_rows(name, columns)

    def log_table(self, name: str, value: Mapping[str, Any], description: str = "") -> None:
        """Adds rows, given as a dict of columns, to the table `name`."""
        self._writer().add_rows(name, value)

    def log_image(self, name: str, path: Any = None, plot: Any = None, description: str = "") -> None:
        """Logs an image file, or a figure of matplotlib."""
        content, suffix = image_content(path, plot)
        self._writer().add_image(name, content, suffix)

    def tag(self, key: str, value: Any = None) -> None:
        self._writer().set_tag(str(key), "" if value is None else str(value))

    def set_tags(self, tags: Mapping[str, Any]) -> None:
        for key, value in tags.items():
            self.tag(key, value)

    def upload_file(self, name: str, path_or_stream: Any, datastore_name: str = "") -> None:
        """Stores a file under the path `name`, at once. Raises TrainHubError if the hub does not take it, and
        OSError if it cannot be read."""
        if hasattr(path_or_stream, "read"):
            self._put(name, path_or_stream)
            return
        with open(path_or_stream, "rb") as file:
            self._put(name, file)

    def upload_files(self, names: Iterable[str], paths: Iterable[Any], **_others: Any) -> None:
        for name, path in zip(names, paths):
            self.upload_file(name, path)

    def upload_folder(self, name: str, path: Any, datastore_name: str = "") -> None:
        """Stores all files of the folder `path` below the path `name`. Raises UserErrorException if it is no
        folder."""
        root = os.fspath(path)
        if not os.path.isdir(root):
            raise UserErrorException(f"upload_folder: {root} is not a folder.")
        for parent, _folders, files in os.walk(root):
            for file in sorted(files):
                full = os.path.join(parent, file)
                below = os.path.relpath(full, root).replace(os.sep, "/")
                self.upload_file(f"{name.rstrip('/')}/{below}", full)

    def flush(self, timeout_seconds: float = 300) -> None:
        """Returns when everything that was logged is sent, or after the time with a line on stderr."""
        if not self._writer().flush(timeout_seconds):
            print("TrainHub: not everything is sent yet; the rest follows.", file=sys.stderr, flush=True)

    def complete(self, _set_status: bool = True) -> None:
        """Ends a run that was opened by a script. A job ends when its processes do; its numbers are sent."""
        self._end("FINISHED", set_status=_set_status)

    def fail(
        self, error_details: Any = None, error_code: Any = None, _set_status: bool = True, **_others: Any
    ) -> None:
        """Like `complete`, with the error in the tag `azureml.error`."""
        if error_details is not None:
            self.tag("azureml.error", error_details)
        self._end("FAILED", set_status=_set_status)

    def _end(self, status: str, *, set_status: bool) -> None:
        raise NotImplementedError

    def _put(self, name: str, content: IO[bytes]) -> None:
        path = name[2:] if name.startswith("./") else name
        self._writer().put_file(path, content)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None:
            self.complete()
        else:
            self.fail(f"{type(error).__name__}: {error}")
