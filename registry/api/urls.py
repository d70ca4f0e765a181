from __future__ import annotations

from django.urls import path

from registry.api import views

urlpatterns = [
    path("models/", views.ModelList.as_view()),
    path("models/<str:name>/", views.ModelDetail.as_view()),
    path("models/<str:name>/versions/", views.VersionList.as_view()),
    path("models/<str:name>/versions/<int:number>/", views.VersionDetail.as_view()),
    path("models/<str:name>/aliases/<str:alias>/", views.AliasDetail.as_view()),
    path("signing-keys/", views.SigningKeys.as_view()),
]
