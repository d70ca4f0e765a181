from __future__ import annotations

from django.apps import AppConfig


class DatastoresConfig(AppConfig):
    name = "datastores"
