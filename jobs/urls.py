from __future__ import annotations

from django.urls import path

from jobs.checkpoint_views import pages as checkpoints
from jobs.dataset_pages import run_outputs
from jobs.dataset_pages import uploads as dataset_uploads
from jobs.dataset_pages import views as datasets
from jobs.datastore_tests import views as datastores
from jobs.environment_pages import build_pages as builds
from jobs.environment_pages import hub_files, life, run_packages
from jobs.environment_pages import views as own
from jobs.log_shipping import pages as log_targets
from jobs.prometheus.page import MetricsPage
from jobs.quotas import views as quotas
from jobs.spec_formats import export_page, import_page
from jobs.views import actions, catalog, dashboard, deleted, environments, lanes, queue, run, search, tabs
from workspaces.settings_sections import SECTIONS

tabs.register("checkpoints", checkpoints.TAB, after="gpus")
tabs.register("packages", run_packages.TAB, after="plan")
tabs.register("export", export_page.TAB, after="spec")

SECTIONS.append(log_targets.SECTION)

urlpatterns = [
    path("", dashboard.dashboard, name="dashboard"),
    path("data/datastores/<str:name>/", datastores.datastore, name="datastore"),
    path("data/datastores/<str:name>/test/", datastores.datastore_test, name="datastore-test"),
    path(
        "data/datastores/<str:name>/test/cancel/",
        datastores.datastore_test_cancel,
        name="datastore-test-cancel",
    ),
    path("data/sets/new/", datasets.dataset_create, name="dataset-create"),
    path("data/outputs/", run_outputs.output_create, name="output-create"),
    path("data/upload/", dataset_uploads.upload_create, name="upload-create"),
    path("data/sets/<str:name>/", datasets.dataset, name="dataset"),
    path("data/sets/<str:name>/upload/", dataset_uploads.dataset_upload, name="dataset-upload"),
    path("data/sets/<str:name>/upload/cancel/", dataset_uploads.upload_cancel, name="upload-cancel"),
    path("data/sets/<str:name>/refresh/", datasets.dataset_refresh, name="dataset-refresh"),
    path("data/sets/<str:name>/change/", datasets.dataset_change, name="dataset-change"),
    path("data/sets/<str:name>/delete/", datasets.dataset_delete, name="dataset-delete"),
    path("data/sets/<str:name>/<int:number>/", datasets.dataset_version, name="dataset-version"),
    path("search/", search.search, name="search"),
    path("search/palette/", search.palette, name="palette"),
    path("clusters/<slug:name>/queue/", queue.cluster_queue, name="cluster-queue"),
    path("runs/new/import/", import_page.import_file, name="wizard-import"),
    path("runs/deleted/", deleted.deleted, name="deleted-runs"),
    path("runs/<int:number>/restore/", deleted.restore, name="run-restore"),
    path("runs/<int:number>/purge/", deleted.purge, name="run-purge"),
    path("runs/<int:number>/archive/", actions.archive, name="run-archive"),
    path("runs/<int:number>/unarchive/", actions.unarchive, name="run-unarchive"),
    path("experiments/<int:pk>/delete/", deleted.delete_experiment, name="experiment-delete"),
    path("experiments/<int:pk>/restore/", deleted.restore_experiment, name="experiment-restore"),
    path("experiments/<int:pk>/purge/", deleted.purge_experiment, name="experiment-purge"),
    path("runs/<int:number>/", run.run, name="run"),
    path("runs/<int:number>/header/", run.run_header, name="run-header"),
    path("runs/<int:number>/cancel/", actions.cancel, name="run-cancel"),
    path("runs/<int:number>/clone/", actions.clone, name="run-clone"),
    path("runs/<int:number>/delete/", actions.delete, name="run-delete"),
    path("runs/<int:number>/lanes/", lanes.live, name="run-lanes"),
    path(
        "runs/<int:number>/checkpoints/<int:checkpoint>/resume/",
        checkpoints.resume,
        name="run-checkpoint-resume",
    ),
    path(
        "runs/<int:number>/checkpoints/<int:checkpoint>/clone/",
        checkpoints.clone,
        name="run-checkpoint-clone",
    ),
    path(
        "runs/<int:number>/packages/requirements.txt",
        run_packages.download_requirements,
        name="run-packages-download",
    ),
    path("runs/<int:number>/export/download/", export_page.download_export, name="run-export"),
    path("runs/<int:number>/<slug:tab>/", run.run, name="run-tab"),
    path("runs/id/<str:run_id>/", run.by_id, name="run-by-id"),
    path("metrics", MetricsPage.as_view(), name="metrics"),
    path("quotas/", quotas.quotas, name="quotas"),
    path("settings/log-system/", log_targets.log_target, name="log-target"),
    path("settings/log-system/test/", log_targets.log_target_test, name="log-target-test"),
    path("settings/log-system/delete/", log_targets.log_target_delete, name="log-target-delete"),
    path("experiments/", catalog.experiments, name="experiments"),
    path("environments/", environments.environments, name="environments"),
    path("environments/new/", own.new, name="environment-new"),
    path("environments/<str:name>/edit/", own.edit, name="environment-edit"),
    path("environments/<str:name>/clone/", own.clone, name="environment-clone"),
    path("environments/<str:name>/delete/", life.delete, name="environment-delete"),
    path("environments/<str:name>/versions/<int:number>/", own.version, name="environment-version"),
    path(
        "environments/<str:name>/versions/<int:number>/outdated/", life.outdated, name="environment-outdated"
    ),
    path(
        "environments/<str:name>/versions/<int:number>/hub-files/",
        hub_files.show_files,
        name="environment-files",
    ),
    path(
        "environments/<str:name>/versions/<int:number>/fetch/",
        hub_files.order_hub_files,
        name="environment-fetch",
    ),
    path(
        "environments/<str:name>/versions/<int:number>/<str:file>", own.download, name="environment-download"
    ),
    path(
        "environments/<str:name>/versions/<str:version>/build/", builds.order_builds, name="environment-order"
    ),
    path(
        "environments/<str:name>/versions/<int:number>/build-again/",
        builds.build_again,
        name="environment-build-again",
    ),
    path(
        "environments/<str:name>/versions/<str:version>/nodes/", builds.node_table, name="environment-nodes"
    ),
    path("environments/<str:name>/builds/<str:build>/", builds.show_build, name="environment-build"),
    path("environments/<str:name>/builds/<str:build>/cancel/", builds.cancel_ordered, name="build-cancel"),
    path("environments/<str:name>/", environments.environment, name="environment"),
]
