from __future__ import annotations

from django.urls import path

from clusters.api import (
    agent_upgrades,
    alert_handling,
    alert_thresholds,
    alerts,
    fair_share,
    node_windows,
    provisioning,
    slurm,
    telemetry,
    views,
)

urlpatterns = [
    path("alerts/", alerts.AlertList.as_view()),
    path("alerts/thresholds/", alert_thresholds.AlertThresholds.as_view()),
    path("alerts/<int:pk>/acknowledge/", alert_handling.AlertAcknowledge.as_view()),
    path("alerts/<int:pk>/snooze/", alert_handling.AlertSnooze.as_view()),
    path("clusters/", provisioning.Clusters.as_view()),
    path("clusters/<slug:name>/", provisioning.ClusterDetail.as_view()),
    path("clusters/<slug:name>/drain/", provisioning.ClusterDrain.as_view()),
    path("clusters/<slug:name>/resume/", provisioning.ClusterResume.as_view()),
    path("clusters/<slug:name>/agents/", agent_upgrades.ClusterUpgrade.as_view()),
    path("clusters/<slug:name>/test/", slurm.ClusterTest.as_view()),
    path("clusters/<slug:name>/login-node/", slurm.ClusterLoginNode.as_view()),
    path("clusters/<slug:name>/login-node/rotate-key/", slurm.ClusterLoginKey.as_view()),
    path("clusters/<slug:name>/unix-accounts/", slurm.ClusterUnixAccounts.as_view()),
    path("clusters/<slug:name>/slurm-token/", slurm.ClusterSlurmToken.as_view()),
    path("clusters/<slug:name>/observer-token/", slurm.ClusterObserverToken.as_view()),
    path("clusters/<slug:name>/shares/", fair_share.ClusterShares.as_view()),
    path("clusters/<slug:name>/windows/", node_windows.ClusterWindows.as_view()),
    path("clusters/<slug:name>/windows/<int:pk>/", node_windows.ClusterWindow.as_view()),
    path("gpu-models/", views.GpuModels.as_view()),
    path("nodes/", views.NodeList.as_view()),
    path("nodes/invitations/", views.Invitations.as_view()),
    path("nodes/<slug:name>/", views.NodeDetail.as_view()),
    path("nodes/<slug:name>/series/", telemetry.NodeSeriesView.as_view()),
    # A MIG device of an older driver has slashes in its UUID: MIG-GPU-<uuid>/1/0.
    path("gpus/<path:uuid>/series/", telemetry.GpuSeriesView.as_view()),
    path("clusters/<slug:name>/heat/", telemetry.ClusterHeat.as_view()),
    path("metrics/", telemetry.MetricTables.as_view()),
    path("nodes/<slug:name>/revoke/", views.NodeRevoke.as_view()),
    path("nodes/<slug:name>/upgrade/", agent_upgrades.NodeAgentUpgrade.as_view()),
    path("nodes/<slug:name>/drain/", provisioning.NodeDrain.as_view()),
    path("nodes/<slug:name>/resume/", provisioning.NodeResume.as_view()),
    path("nodes/<slug:name>/monitor-only/", provisioning.NodeMonitorOnly.as_view()),
    path("nodes/<slug:name>/low-priority/", provisioning.NodeLowPriority.as_view()),
    path("nodes/<slug:name>/remove/", provisioning.NodeRemove.as_view()),
]
