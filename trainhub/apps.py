from __future__ import annotations

from django.apps import AppConfig

from trainhub import celery, checks

__all__ = ["TrainHubConfig", "celery", "checks"]


class TrainHubConfig(AppConfig):
    """Importing this binds the Celery app and the system checks, whichever way Django was started."""

    name = "trainhub"
