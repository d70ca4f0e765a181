from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path
from drf_spectacular.views import SpectacularAPIView

from trainhub.api_root import ApiRoot
from trainhub.demo.files import is_demo
from trainhub.sdk_downloads.settings_section import SECTION
from trainhub.views import api_page, bad_request, page_not_found
from workspaces.settings_sections import SECTIONS

PAGES = (
    "workspaces.urls",
    "clusters.provisioning.urls",
    "clusters.urls",
    "datastores.urls",
    "jobs.wizard.urls",
    "jobs.urls",
    "tracking.history.urls",
    "tracking.urls",
    "tracking.usage.urls",
    "tracking.comparison.differences.urls",
    "registry.exports.urls",
    "registry.urls",
    "trainhub.documentation.urls",
    "trainhub.system_page.urls",
)
APIS = (
    "workspaces.api.urls",
    "clusters.api.urls",
    "datastores.api.urls",
    "tracking.api.urls",
    "jobs.api.urls",
    "jobs.lineage.urls",
    "jobs.spec_formats.urls",
    "registry.exports.api.urls",
    "registry.api.urls",
    "trainhub.system_page.api_urls",
)

# Here and not in AppConfig.ready, because only processes that serve pages load this module.
SECTIONS.append(SECTION)

handler400 = bad_request
handler404 = page_not_found
urlpatterns: list[URLPattern | URLResolver] = [
    *(path("", include(name)) for name in PAGES),
    *(path("api/v1/", include(name)) for name in APIS),
    path("api/v1/", ApiRoot.as_view()),
    path("api/v1/schema/", SpectacularAPIView.as_view(), name="api-schema"),
    path("api/", api_page, name="api"),
]
if is_demo():
    urlpatterns.append(path("demo/", include("trainhub.demo.urls")))
