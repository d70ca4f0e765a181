from __future__ import annotations

from django.urls import path

from jobs.wizard import start, views

urlpatterns = [
    path("runs/new/", start.start, name="wizard-start"),
    path("runs/new/blank/", start.blank, name="wizard-blank"),
    path("runs/new/example/<slug:name>/", start.from_example, name="wizard-example"),
    path("runs/new/environment/", start.with_environment, name="wizard-environment"),
    path("runs/new/upload/", start.upload, name="wizard-upload"),
    path("runs/new/<uuid:draft_id>/upload/", start.upload, name="wizard-upload-to"),
    path("runs/new/repository/", start.from_repository, name="wizard-repository"),
    path("runs/new/<uuid:draft_id>/repository/", start.from_repository, name="wizard-repository-to"),
    path("runs/new/<uuid:draft_id>/submit/", views.submit, name="wizard-submit"),
    path("runs/new/<uuid:draft_id>/discard/", views.discard, name="wizard-discard"),
    path("runs/new/<uuid:draft_id>/run.json", views.spec, name="wizard-spec"),
    path("runs/new/<uuid:draft_id>/run.sbatch", views.job_script, name="wizard-job-script"),
    path("runs/new/<uuid:draft_id>/<slug:step>/", views.step, name="wizard-step"),
    path("runs/new/<uuid:draft_id>/<slug:step>/preview/", views.preview, name="wizard-preview"),
]
