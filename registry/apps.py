from __future__ import annotations

from django.apps import AppConfig
from django.utils.module_loading import import_string

from workspaces import sweeping


class RegistryConfig(AppConfig):
    name = "registry"

    def ready(self) -> None:
        sweeping.add(self.get_model("ModelFile"), workspace="version__model__workspace")
        # What they import needs the models, which are there only now.
        import_string("jobs.telling.FOLLOWERS").append(import_string("registry.exporting.settling.follow"))
        import_string("workspaces.sections.SECTIONS").append(import_string("registry.shown_keys.SECTION"))
