from __future__ import annotations

from django.apps import AppConfig, apps

from clusters.alerts import silence_sources
from datastores import uses
from jobs.retention.purge_registry import RUN_TABLES, RunTable
from jobs.retention_rules import data_tables
from jobs.retention_rules.data_tables import DataTable
from jobs.states import DataKind
from workspaces.administration import active_work
from workspaces.stored_files import blob_names


class JobsConfig(AppConfig):
    name = "jobs"

    def ready(self) -> None:
        silence_sources.RANK_SILENCES.append("jobs.logs.rank_silence.silences")
        active_work.MODULES.append("jobs.scheduling.active_runs")
        uses.MODULES.append("jobs.scheduling.datastore_use")
        blob_names.add(self.get_model("Snapshot"), workspace="workspace", person="created_by")
        blob_names.add(self.get_model("Artifact"), workspace="run__workspace", person="run__created_by")
        blob_names.add(
            self.get_model("BuildFile"), workspace="build__workspace", person="build__own_version__created_by"
        )
        blob_names.add(
            self.get_model("CheckpointFile"),
            workspace="checkpoint__run__workspace",
            person="checkpoint__run__created_by",
        )
        # What logs take counts against a workspace by the sizes that nodes report.
        blob_names.add_shared(self.get_model("ArchivedLog"))
        RUN_TABLES.append(RunTable(self.get_model("DataRemoval")))
        RUN_TABLES.append(RunTable(self.get_model("DatasetUse")))
        RUN_TABLES.append(RunTable(self.get_model("CheckpointFile"), "checkpoint__run"))
        RUN_TABLES.append(RunTable(self.get_model("StoredCheckpointFile"), "checkpoint__run"))
        RUN_TABLES.append(RunTable(self.get_model("CheckpointPart"), "checkpoint__run"))
        RUN_TABLES.append(RunTable(self.get_model("FinalFolder"), "part__attempt__run"))
        RUN_TABLES.append(RunTable(self.get_model("Checkpoint")))
        RUN_TABLES.append(RunTable(self.get_model("StoredOutput"), "folder__run"))
        RUN_TABLES.append(RunTable(self.get_model("OutputFolder")))
        of_run = ("Artifact", "RunTag", "RunEvent")
        of_attempt = ("LogProgress", "LogArchive", "ArchivedLog", "Member", "AttemptNode")
        RUN_TABLES.extend(RunTable(self.get_model(name)) for name in of_run)
        RUN_TABLES.append(RunTable(self.get_model("SentBlob"), "part__attempt__run"))
        RUN_TABLES.extend(RunTable(self.get_model(name), "attempt__run") for name in of_attempt)
        RUN_TABLES.append(RunTable(self.get_model("Attempt")))
        self._register_data()

    def _register_data(self) -> None:
        """What retention rules remove."""
        checkpoint_file, artifact = self.get_model("CheckpointFile"), self.get_model("Artifact")
        curves = apps.get_model("clusters", "StoredSeries")
        data_tables.TABLES.append(DataTable(DataKind.OUTPUTS, artifact))
        data_tables.TABLES.append(DataTable(DataKind.OUTPUTS, checkpoint_file, "checkpoint__run"))
        archived_log = self.get_model("ArchivedLog")
        data_tables.TABLES.append(DataTable(DataKind.LOGS, archived_log, "attempt__run"))
        data_tables.TABLES.append(DataTable(DataKind.TELEMETRY, curves, "holder", "data"))
