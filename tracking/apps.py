from __future__ import annotations

from django.apps import AppConfig
from django.utils.module_loading import import_string

from jobs.retention.purge_registry import RUN_TABLES, RunTable
from workspaces.stored_files import blob_gc


class TrackingConfig(AppConfig):
    name = "tracking"

    def ready(self) -> None:
        blob_gc.add(self.get_model("LoggedModelFile"), workspace="model__experiment__workspace")
        RUN_TABLES.append(RunTable(self.get_model("MetricBlock"), "metric__run"))
        for name in ("MetricSlice", "Metric", "Param", "EventFile", "RunInput", "RunOutput", "Star"):
            RUN_TABLES.append(RunTable(self.get_model(name)))
        RUN_TABLES.append(
            RunTable(self.get_model("LoggedModelFile"), "model__run", experiment="model__experiment")
        )
        RUN_TABLES.append(RunTable(self.get_model("LoggedModel"), experiment="experiment"))
        # Views need the models, which are there only now.
        register_tab = import_string("jobs.views.tabs.register")
        register_tab("metrics", import_string("tracking.views.metrics.TAB"), after="logs")
        register_tab("params", import_string("tracking.views.logged_data.TAB"), after="metrics")
        register_tab("notes", import_string("tracking.notes_tab.TAB"), after="plan")
        register_tab("outputs", import_string("tracking.artifacts.pages.TAB"), after="plan")
