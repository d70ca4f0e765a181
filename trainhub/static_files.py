"""Serves static files from the folders of the project and its apps, without collectstatic and without a
CDN."""

from __future__ import annotations

from pathlib import Path

from django.contrib.staticfiles.finders import AppDirectoriesFinder, FileSystemFinder
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

# Files of these folders change only with an upgrade. Browsers revalidate our own by ETag, because ES modules
# import each other by names without a version.
THIRD_PARTY = ("bootstrap", "django_htmx", "vendor")


class HubStatic(StaticFiles):
    def __init__(self) -> None:
        super().__init__(check_dir=False)
        finders = (FileSystemFinder(), AppDirectoriesFinder())
        self.all_directories = [
            storage.location for finder in finders for storage in finder.storages.values()
        ]

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        lasting = Path(path).parts[0] in THIRD_PARTY
        response.headers["Cache-Control"] = "max-age=86400" if lasting else "no-cache"
        return response
