"""Static files straight from the folders of the project, its apps and plotly: no collectstatic, no CDN."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

from django.contrib.staticfiles.finders import AppDirectoriesFinder, FileSystemFinder
from starlette.responses import FileResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

THIRD_PARTY = ("bootstrap", "django_htmx", "plotly", "vendor")
"""Change only with an upgrade. Ours are asked for again by ETag: ES modules import each other by bare name."""
PLOTLY = "plotly/plotly.min.js"


class HubStatic(StaticFiles):
    def __init__(self) -> None:
        super().__init__(check_dir=False)
        finders = (FileSystemFinder(), AppDirectoriesFinder())
        self.all_directories = [storage.location for finder in finders for storage in finder.storages.values()]

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = FileResponse(_plotly()) if path == PLOTLY else await super().get_response(path, scope)
        lasting = Path(path).parts[0] in THIRD_PARTY
        response.headers["Cache-Control"] = "max-age=86400" if lasting else "no-cache"
        return response


def _plotly() -> str:
    """The one file of the plotly package that browsers get; the package itself is not imported."""
    spec = find_spec("plotly")
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError("the package plotly is not installed; run pip install -r requirements.txt")
    return os.path.join(spec.submodule_search_locations[0], "package_data", "plotly.min.js")  # noqa: PTH118
