from __future__ import annotations

from django.urls import path

from tracking import notes_tab
from tracking.comparison import comparison_page

urlpatterns = [
    path("runs/<int:number>/notes/save/", notes_tab.save, name="note-save"),
    path("compare/", comparison_page.page, name="compare"),
    path("compare/candidates/", comparison_page.candidates, name="compare-candidates"),
]
