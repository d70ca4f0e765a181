from __future__ import annotations

from django.apps import AppConfig

from clusters.alerts import silence_sources
from datastores import uses
from jobs.retention.purge_registry import RUN_TABLES, RunTable
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
        RUN_TABLES.append(RunTable(self.get_model("DatasetUse")))
        RUN_TABLES.append(RunTable(self.get_model("CheckpointFile"), "checkpoint__run"))
        RUN_TABLES.append(RunTable(self.get_model("StoredCheckpointFile"), "checkpoint__run"))
        RUN_TABLES.append(RunTable(self.get_model("CheckpointPart"), "checkpoint__run"))
        RUN_TABLES.append(RunTable(self.get_model("FinalFolder"), "part__attempt__run"))
        RUN_TABLES.append(RunTable(self.get_model("Checkpoint")))
        RUN_TABLES.append(RunTable(self.get_model("StoredOutput"), "folder__run"))
        RUN_TABLES.append(RunTable(self.get_model("OutputFolder")))
        of_run = ("Artifact", "RunTag", "RunEvent")
        of_attempt = ("LogProgress", "Member", "AttemptNode")
        RUN_TABLES.extend(RunTable(self.get_model(name)) for name in of_run)
        RUN_TABLES.append(RunTable(self.get_model("SentBlob"), "part__attempt__run"))
        RUN_TABLES.extend(RunTable(self.get_model(name), "attempt__run") for name in of_attempt)
        RUN_TABLES.append(RunTable(self.get_model("Attempt")))
