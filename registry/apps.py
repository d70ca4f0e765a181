from __future__ import annotations

from typing import TYPE_CHECKING

from django.apps import AppConfig
from django.utils.module_loading import import_string

from workspaces.stored_files import blob_names

if TYPE_CHECKING:
    from jobs.models import Run


class RegistryConfig(AppConfig):
    name = "registry"

    def ready(self) -> None:
        blob_names.add(
            self.get_model("ModelFile"), workspace="version__model__workspace", person="version__created_by"
        )
        # What it imports needs the models, which are there only now.
        import_string("jobs.run_notifications.END_HOOKS").append(_follow_exports)
        protections = import_string("jobs.retention_rules.protections.PROTECTIONS")
        protections.append(import_string("registry.certified_runs.PROTECTION"))


def _follow_exports(run: Run) -> None:
    # Imported when the first run ends: `manage.py` commands have no use for what it loads, such as numpy.
    import_string("registry.exports.completion.follow_exports")(run)
