from __future__ import annotations

from django.urls import path

from clusters.provisioning import partition_views, token_views, views

urlpatterns = [
    path("clusters/add-cluster/", views.add_cluster, name="add-cluster"),
    path("clusters/<slug:name>/edit/", views.edit_cluster, name="cluster-edit"),
    path("clusters/<slug:name>/test/", partition_views.test_partition, name="cluster-test"),
    path(
        "clusters/<slug:name>/unix-accounts/", partition_views.set_unix_account, name="cluster-unix-accounts"
    ),
    path(
        "clusters/<slug:name>/unix-accounts/remove/",
        partition_views.remove_unix_account,
        name="cluster-unix-account-remove",
    ),
    path(
        "clusters/<slug:name>/login-node/wrapper/",
        partition_views.download_login_wrapper,
        name="cluster-login-wrapper",
    ),
    path(
        "clusters/<slug:name>/login-node/rotate-key/",
        partition_views.rotate_login_key,
        name="cluster-login-key-rotate",
    ),
    path("clusters/<slug:name>/slurm-token/", token_views.set_own_token, name="cluster-slurm-token"),
    path(
        "clusters/<slug:name>/slurm-token/remove/",
        token_views.remove_own_token,
        name="cluster-slurm-token-remove",
    ),
    path(
        "clusters/<slug:name>/observer-token/",
        token_views.set_observer_token,
        name="cluster-observer-token",
    ),
    path(
        "clusters/<slug:name>/observer-token/remove/",
        token_views.remove_observer_token,
        name="cluster-observer-token-remove",
    ),
    path("clusters/<slug:name>/life/", views.cluster_life, name="cluster-life"),
    *(
        path(f"clusters/<slug:name>/{verb}/", views.cluster_do, {"verb": verb}, name=f"cluster-{verb}")
        for verb in views.CLUSTER_VERBS
    ),
    *(
        path(f"nodes/<slug:name>/{verb}/", views.node_do, {"verb": verb}, name=f"node-{verb}")
        for verb in views.NODE_VERBS
    ),
]
