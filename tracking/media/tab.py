"""The Media tab of a run's page."""

from __future__ import annotations

from django.http import HttpRequest

from jobs.models import Run
from jobs.views.tabs import Tab
from tracking.media.media_grid import has_media, media_grid


def context(run: Run, attempt: int, _: HttpRequest) -> dict[str, object]:
    return {"media": media_grid([(run, attempt)])}


TAB = Tab("Media", context, ("css/media.css",), ("js/media/page.js",), stands=True, shows=has_media)
