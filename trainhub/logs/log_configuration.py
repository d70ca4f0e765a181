"""The hub's setting LOGGING, and where its processes write."""

from __future__ import annotations

from typing import Any

from trainhub import env

LINES, JSON = "LINES", "JSON"
FILES, STDOUT = "FILES", "STDOUT"
_FORMATTERS: dict[str, dict[str, Any]] = {
    LINES: {
        "()": "trainhub.logs.line_format.LineFormatter",
        "format": "{asctime} {levelname} {name}: {message}",
        "style": "{",
    },
    JSON: {"()": "trainhub.logs.json_format.JsonFormatter"},
}


def is_json() -> bool:
    """Returns whether each line is an object of JSON (LOG_FORMAT)."""
    return env.choice("LOG_FORMAT", LINES, (LINES, JSON)) == JSON


def is_on_stdout() -> bool:
    """Returns whether the processes of `up` write to its standard output, and not to files (LOG_TO)."""
    return env.choice("LOG_TO", FILES, (FILES, STDOUT)) == STDOUT


def logging_settings(level: str) -> dict[str, Any]:
    """Returns the configuration of Python's logging: all from `level` on goes to standard error."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": _FORMATTERS[JSON if is_json() else LINES]},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            "django": {"handlers": [], "level": level, "propagate": True},
            "django.server": {"handlers": [], "level": "WARNING", "propagate": True},
            "celery.beat": {"level": "WARNING"},
            "httpx": {"level": "WARNING"},
            "celery.app.trace": {"level": "WARNING"},
            "celery.worker.strategy": {"level": "WARNING"},
        },
    }
