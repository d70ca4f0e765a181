from __future__ import annotations

from django.urls import path

from tracking.history import changed_rows, page, saved_views, selection_form, stars_and_pins

urlpatterns = [
    path("runs/", page.runs, name="runs"),
    path("runs/changes/", changed_rows.changed_rows, name="runs-changes"),
    path("runs/complete/", page.completion, name="runs-complete"),
    path("runs/group/", page.group_rows, name="runs-of-group"),
    path("runs/menu/<slug:name>/", page.menu, name="runs-menu"),
    path("runs/parts/<int:number>/", page.child_rows, name="run-parts"),
    path("runs/bulk/", selection_form.act, name="runs-bulk"),
    path("runs/star/<int:number>/", stars_and_pins.star_run, name="run-star"),
    path("runs/views/", saved_views.save_view, name="view-save"),
    path("runs/views/<int:pk>/delete/", saved_views.delete_view, name="view-delete"),
]
