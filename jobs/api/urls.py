from __future__ import annotations

from django.urls import path

from jobs.api import (
    catalog,
    environment_builds,
    environments,
    log_search,
    run_deletion,
    run_detail,
    run_packages,
    run_series,
    run_submission,
)
from jobs.datastore_tests import api as datastore_tests
from jobs.log_shipping.target_api import LogTargetDetail, LogTargetTest
from jobs.quotas.api import Quotas

urlpatterns = [
    path("quotas/", Quotas.as_view()),
    path("log-target/", LogTargetDetail.as_view()),
    path("log-target/test/", LogTargetTest.as_view()),
    path("snapshots/", catalog.SnapshotList.as_view()),
    path("snapshots/git/", catalog.GitSnapshotList.as_view()),
    path("environments/", catalog.EnvironmentList.as_view()),
    path("environments/<str:name>/", environments.EnvironmentDetail.as_view()),
    path("environments/<str:name>/clone/", environments.EnvironmentClone.as_view()),
    path("environments/<str:name>/versions/<int:number>/", environments.EnvironmentVersionDetail.as_view()),
    path(
        "environments/<str:name>/versions/<int:number>/outdated/",
        environments.EnvironmentVersionOutdated.as_view(),
    ),
    path(
        "environments/<str:name>/versions/<int:number>/fetch/",
        environments.EnvironmentVersionFetch.as_view(),
    ),
    path(
        "environments/<str:name>/versions/<str:version>/build/",
        environment_builds.EnvironmentBuildRequest.as_view(),
    ),
    path(
        "environments/<str:name>/versions/<str:version>/builds/",
        environment_builds.EnvironmentBuildList.as_view(),
    ),
    path(
        "environments/<str:name>/versions/<str:version>/builds/<str:build>/",
        environment_builds.EnvironmentBuildDetail.as_view(),
    ),
    path(
        "environments/<str:name>/versions/<str:version>/builds/<str:build>/cancel/",
        environment_builds.EnvironmentBuildCancel.as_view(),
    ),
    path("datastores/<str:name>/test/", datastore_tests.DatastoreTestDetail.as_view()),
    path("datastores/<str:name>/test/cancel/", datastore_tests.DatastoreTestCancel.as_view()),
    path("examples/", catalog.ExampleList.as_view()),
    path("runs/preview/", run_submission.RunPreview.as_view()),
    path("runs/deleted/", run_deletion.DeletedRunList.as_view()),
    path("runs/<str:run>/restore/", run_deletion.RunRestore.as_view()),
    path("runs/<str:run>/purge/", run_deletion.RunPurge.as_view()),
    path("runs/<str:run>/archive/", run_deletion.RunArchive.as_view()),
    path("runs/<str:run>/unarchive/", run_deletion.RunUnarchive.as_view()),
    path("runs/<str:run>/", run_detail.RunDetail.as_view()),
    path("runs/<str:run>/cancel/", run_detail.RunCancel.as_view()),
    path("runs/<str:run>/clone/", run_detail.RunClone.as_view()),
    path("runs/<str:run>/events/", run_detail.RunEvents.as_view()),
    path("runs/<str:run>/members/", run_detail.RunMembers.as_view()),
    path("runs/<str:run>/logs/", run_detail.RunLogs.as_view()),
    path("runs/<str:run>/logs/search/", log_search.RunLogSearch.as_view()),
    path("runs/<str:run>/series/", run_series.RunSeries.as_view()),
    path("runs/<str:run>/outputs/", run_detail.RunOutputs.as_view()),
    path("runs/<str:run>/checkpoints/", run_detail.RunCheckpoints.as_view()),
    path("runs/<str:run>/resume/", run_detail.RunResume.as_view()),
    path("runs/<str:run>/packages/", run_packages.RunPackages.as_view()),
]
