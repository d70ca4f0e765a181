from __future__ import annotations

from django.urls import path

from jobs.views import tabs
from tracking import notes_tab
from tracking.artifacts import pages as artifact_pages
from tracking.comparison import comparison_page
from tracking.media import tab as media_tab
from tracking.media.histogram_data import histogram_data
from tracking.mlflow import client_versions
from tracking.overview import tab as overview_tab
from tracking.tensorboard import pages as tensorboard_pages
from tracking.views import logged_data, metrics
from workspaces.authentication import clients

# Here and not in AppConfig.ready: only processes that serve pages load this module. The views behind the tabs
# load numpy and the REST framework, 50 MiB that the worker and manage.py commands have no use for.
tabs.register("overview", overview_tab.TAB, after="")
tabs.register("metrics", metrics.TAB, after="logs")
tabs.register("media", media_tab.TAB, after="metrics")
tabs.register("params", logged_data.TAB, after="media")
tabs.register("notes", notes_tab.TAB, after="plan")
tabs.register("outputs", artifact_pages.TAB, after="plan")
clients.register(client_versions.mlflow_notice)

urlpatterns = [
    path("runs/<int:number>/notes/save/", notes_tab.save, name="note-save"),
    path("runs/<int:number>/media/histogram/", histogram_data, name="run-histogram"),
    path("runs/<int:number>/outputs/tensorboard/", tensorboard_pages.page, name="run-tensorboard"),
    path("compare/", comparison_page.page, name="compare"),
    path("compare/candidates/", comparison_page.candidates_part, name="compare-candidates"),
]
