from __future__ import annotations

from django.apps import AppConfig
from django.utils.module_loading import import_string

from workspaces.stored_files import blob_gc


class RegistryConfig(AppConfig):
    name = "registry"

    def ready(self) -> None:
        blob_gc.add(self.get_model("ModelFile"), workspace="version__model__workspace")
        # What they import needs the models, which are there only now.
        import_string("jobs.run_notifications.END_HOOKS").append(
            import_string("registry.exports.completion.follow")
        )
        import_string("workspaces.settings_sections.SECTIONS").append(
            import_string("registry.key_settings.SECTION")
        )
