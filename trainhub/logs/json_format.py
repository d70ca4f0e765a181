"""Log lines as JSON objects, for programs that collect them: `LOG_FORMAT=json`."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime

from trainhub.logs.line_format import MAX_MESSAGE, MAX_TRACEBACK, shortened


class JsonFormatter(logging.Formatter):
    """A formatter with one object a line: `time` (RFC 3339, UTC), `level`, `logger`, `message`, `process`
    (its number), and `exception`, the traceback, if there is one. ASCII only, so no line imitates another."""

    def format(self, record: logging.LogRecord) -> str:
        fields = json_fields(record.levelname, record.name, record.getMessage(), record.created)
        fields["process"] = record.process or 0
        if record.exc_info:
            fields["exception"] = shortened(self.formatException(record.exc_info), MAX_TRACEBACK)
        return json.dumps(fields)


def json_fields(level: str, logger: str, message: str, created: float) -> dict[str, object]:
    """`created`: Unix seconds."""
    time = datetime.fromtimestamp(created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {"time": time, "level": level, "logger": logger, "message": shortened(message, MAX_MESSAGE)}
