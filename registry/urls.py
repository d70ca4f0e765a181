from __future__ import annotations

from django.urls import path

from registry import views

urlpatterns = [
    path("models/", views.models, name="models"),
    path("models/<str:name>/", views.model, name="model"),
    path("models/<str:name>/alias/", views.alias, name="model-alias"),
    path("register/", views.register, name="register"),
    path("register/", views.register, name="register-form"),
]
