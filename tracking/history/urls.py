from __future__ import annotations

from django.urls import path

from tracking.history import acting, marking, page, saving

urlpatterns = [
    path("runs/", page.runs, name="runs"),
    path("runs/complete/", page.completion, name="runs-complete"),
    path("runs/group/", page.of_group, name="runs-of-group"),
    path("runs/menu/<slug:name>/", page.menu, name="runs-menu"),
    path("runs/parts/<int:number>/", page.parts, name="run-parts"),
    path("runs/bulk/", acting.act, name="runs-bulk"),
    path("runs/star/<int:number>/", marking.star_run, name="run-star"),
    path("runs/views/", saving.save, name="view-save"),
    path("runs/views/<int:pk>/delete/", saving.delete, name="view-delete"),
]
