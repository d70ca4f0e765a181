from __future__ import annotations

from django.apps import AppConfig

from clusters.alerts import silence_sources
from jobs.lineage import recorders
from jobs.retention.purge_registry import RUN_TABLES, RunTable
from jobs.retention_rules import data_tables
from jobs.retention_rules.data_tables import DataTable
from jobs.states import DataKind
from workspaces.stored_files import blob_names


class TrackingConfig(AppConfig):
    name = "tracking"

    def ready(self) -> None:
        recorders.MODULES.append("tracking.dataset_inputs")
        silence_sources.OTHER_SIGNS.append("tracking.metrics.last_points.seconds_since")
        # Files of logged models count as references, so that the garbage collection of blobs spares them.
        blob_names.add(
            self.get_model("LoggedModelFile"),
            workspace="model__experiment__workspace",
            person="model__run__created_by",
        )
        # The purge empties the tables in this order, so rows that refer to others come before them.
        RUN_TABLES.append(RunTable(self.get_model("MetricBlock"), "metric__run"))
        for name in (
            "MetricSlice",
            "Metric",
            "Param",
            "EventFile",
            "Histogram",
            "RunInput",
            "RunOutput",
            "Star",
        ):
            RUN_TABLES.append(RunTable(self.get_model(name)))
        RUN_TABLES.append(
            RunTable(self.get_model("LoggedModelFile"), "model__run", experiment="model__experiment")
        )
        RUN_TABLES.append(RunTable(self.get_model("LoggedModel"), experiment="experiment"))
        self._register_data()

    def _register_data(self) -> None:
        """What retention rules remove: the last, least and greatest value of each metric are no points."""
        points = {
            "MetricBlock": ("metric__run", "data"),
            "MetricSlice": ("run", "data"),
            "Histogram": ("run", ""),
        }
        for name, (run, size) in points.items():
            data_tables.TABLES.append(DataTable(DataKind.METRICS, self.get_model(name), run, size))
        file = self.get_model("LoggedModelFile")
        data_tables.TABLES.append(DataTable(DataKind.OUTPUTS, file, "model__run"))
