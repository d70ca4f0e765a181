from __future__ import annotations

from django.urls import path

from jobs.views.search_hits import SOURCES
from registry.key_settings import SECTION
from registry.views import creation, dataset_models, models, search_hits, versions
from workspaces.settings_sections import SECTIONS

# Here and not in AppConfig.ready, because only processes that serve pages load this module.
SECTIONS.append(SECTION)
SOURCES.append(search_hits.models)

_VERSION = "models/<str:name>/versions/<int:number>/"
urlpatterns = [
    path("models/", models.models, name="models"),
    path("models/<str:name>/", models.model, name="model"),
    path("models/<str:name>/alias/", models.alias, name="model-alias"),
    path("models/<str:name>/describe/", models.describe, name="model-describe"),
    path("models/<str:name>/protect/", models.protect, name="model-protect"),
    path("models/<str:name>/delete/", models.delete, name="model-delete"),
    path(_VERSION, versions.version, name="model-version"),
    path(f"{_VERSION}change/", versions.change, name="model-version-change"),
    path(f"{_VERSION}delete/", versions.delete, name="model-version-delete"),
    path("data/sets/<str:name>/<int:number>/models/", dataset_models.dataset_models, name="dataset-models"),
    path("register/", creation.register, name="register"),
    path("upload/", creation.upload, name="model-upload"),
]
