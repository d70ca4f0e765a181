from __future__ import annotations

from django.apps import AppConfig

from trainhub import celery, checks

__all__ = ["TrainHubConfig", "celery", "checks"]


class TrainHubConfig(AppConfig):
    """The app configuration. Importing this module registers the Celery app and the system checks, however
    Django was started."""

    name = "trainhub"
