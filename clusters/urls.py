from __future__ import annotations

from django.urls import path

from clusters import views
from clusters.agent_upgrades import views as agents
from clusters.alerts import handling_views as handling
from clusters.alerts import threshold_views
from clusters.alerts import views as alerts
from clusters.fair_share import views as fair_share
from clusters.gpus import gpu_views
from clusters.windows import views as windows

urlpatterns = [
    path("alerts/", alerts.alerts_page, name="alerts"),
    path("alerts/count/", alerts.count, name="alert-count"),
    path("alerts/thresholds/", threshold_views.alert_thresholds, name="alert-thresholds"),
    path("alerts/<int:pk>/acknowledge/", handling.acknowledge, name="alert-acknowledge"),
    path("alerts/<int:pk>/snooze/", handling.snooze, name="alert-snooze"),
    path("alerts/<int:pk>/end-snooze/", handling.end_snooze, name="alert-end-snooze"),
    path("clusters/", views.clusters, name="clusters"),
    path("clusters/add/", views.add_machine, name="add-machine"),
    path("clusters/invitations/<int:pk>/", views.invitation, name="invitation"),
    path("clusters/<slug:name>/", views.cluster, name="cluster"),
    path("clusters/<slug:name>/agents/", agents.cluster_agents_page, name="cluster-agents"),
    path("clusters/<slug:name>/agents/cancel/", agents.cancel_upgrade, name="cluster-agents-cancel"),
    path("clusters/<slug:name>/shares/", fair_share.cluster_shares, name="cluster-shares"),
    path("clusters/<slug:name>/windows/", windows.cluster_windows, name="cluster-windows"),
    path("clusters/<slug:name>/windows/<int:pk>/end/", windows.end_window, name="cluster-window-end"),
    # The UUID of a MIG device may hold slashes.
    path("gpus/<path:uuid>/history/", gpu_views.gpu_history, name="gpu-history"),
    path("gpus/<path:uuid>/", gpu_views.gpu, name="gpu"),
    path("nodes/<slug:name>/", views.node, name="node"),
    path("nodes/<slug:name>/upgrade/", agents.upgrade_node, name="node-upgrade"),
    path("nodes/<slug:name>/revoke/", views.node_revoke, name="node-revoke"),
]
