from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path

from trainhub.interim import optional

PAGES = ("workspaces.urls", "clusters.urls", "jobs.wizard.urls", "jobs.urls", "registry.urls")
APIS = ("workspaces.api.urls", "clusters.api.urls", "jobs.api.urls", "registry.api.urls")

urlpatterns: list[URLPattern | URLResolver] = [
    *(path("", include(name)) for name in PAGES if optional(name)),
    *(path("api/v1/", include(name)) for name in APIS if optional(name)),
]
if schema := optional("drf_spectacular.views"):
    urlpatterns += [path("api/v1/schema/", schema.SpectacularAPIView.as_view(), name="api-schema")]
