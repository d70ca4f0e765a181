from __future__ import annotations

from django.apps import AppConfig

from workspaces.stored_files import blob_names


class DatastoresConfig(AppConfig):
    name = "datastores"

    def ready(self) -> None:
        blob_names.add(
            self.get_model("Manifest"),
            workspace="version__dataset__workspace",
            person="version__created_by",
        )
        blob_names.add(self.get_model("DatasetFile"), workspace="dataset__workspace", person="created_by")
        blob_names.add(
            self.get_model("UploadedFile"),
            workspace="version__dataset__workspace",
            person="version__created_by",
        )
