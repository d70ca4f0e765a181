from __future__ import annotations

from django.urls import path

from tracking import noting
from tracking.views import compare

urlpatterns = [
    path("runs/<int:number>/notes/save/", noting.save, name="note-save"),
    path("compare/", compare.page, name="compare"),
    path("compare/candidates/", compare.candidates, name="compare-candidates"),
]
