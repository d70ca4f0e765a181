"""Addresses that only a demo has, below /demo/."""

from __future__ import annotations

from django.urls import path

from trainhub.demo import pages

urlpatterns = [
    path("sign-in/<str:secret>/", pages.sign_in_once, name="demo-sign-in"),
    path("remove/", pages.remove, name="demo-remove"),
]
