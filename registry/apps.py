from __future__ import annotations

from django.apps import AppConfig

from workspaces import sweeping


class RegistryConfig(AppConfig):
    name = "registry"

    def ready(self) -> None:
        sweeping.TABLES.append(self.get_model("ModelFile"))
