"""The hub's setting LOGGING."""

from __future__ import annotations

from typing import Any


def logging_settings(level: str) -> dict[str, Any]:
    """Returns the configuration of Python's logging: all from `level` on goes to standard error."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "line": {
                "()": "trainhub.logs.line_format.LineFormatter",
                "format": "{asctime} {levelname} {name}: {message}",
                "style": "{",
            }
        },
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
