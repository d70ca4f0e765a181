from __future__ import annotations

from django.apps import AppConfig


class TrackingConfig(AppConfig):
    name = "tracking"
