from __future__ import annotations

from django.apps import AppConfig

from workspaces.stored_files import blob_names


class EnvironmentsConfig(AppConfig):
    name = "environments"

    def ready(self) -> None:
        blob_names.add_shared(self.get_model("PackageFile"))
        blob_names.add(self.get_model("BuiltWheel"), workspace="workspace", person="created_by")
        blob_names.add(
            self.get_model("ImageBlob"),
            workspace="version__environment__workspace",
            person="version__created_by",
        )
