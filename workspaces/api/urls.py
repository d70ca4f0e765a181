from __future__ import annotations

from django.urls import path

from workspaces.api import (
    audit,
    channels,
    device_login,
    invitation_links,
    invitations,
    secrets,
    service_accounts,
    views,
    workspaces,
)

urlpatterns = [
    path("me/", views.Me.as_view()),
    path("me/token/", views.OwnToken.as_view()),
    path("audit/", audit.AuditList.as_view()),
    path("workspaces/", workspaces.WorkspaceList.as_view()),
    path("workspaces/<slug:slug>/", workspaces.WorkspaceDetail.as_view()),
    path("workspaces/<slug:slug>/members/", workspaces.WorkspaceMembers.as_view()),
    path("workspaces/<slug:slug>/members/<str:username>/", workspaces.WorkspaceMember.as_view()),
    path("workspaces/<slug:slug>/invitations/", invitation_links.InvitationLinkList.as_view()),
    path("workspaces/<slug:slug>/invitations/<int:pk>/", invitation_links.InvitationLinkDetail.as_view()),
    path("workspaces/<slug:slug>/service-accounts/", service_accounts.ServiceAccountList.as_view()),
    path(
        "workspaces/<slug:slug>/service-accounts/<str:name>/", service_accounts.ServiceAccountDetail.as_view()
    ),
    path(
        "workspaces/<slug:slug>/service-accounts/<str:name>/tokens/",
        service_accounts.ServiceTokenList.as_view(),
    ),
    path(
        "workspaces/<slug:slug>/service-accounts/<str:name>/tokens/<int:pk>/",
        service_accounts.ServiceTokenDetail.as_view(),
    ),
    path("invitations/", invitations.InvitationList.as_view()),
    path("invitations/<int:pk>/accept/", invitations.InvitationAccept.as_view()),
    path("invitations/<int:pk>/decline/", invitations.InvitationDecline.as_view()),
    path("device-login/", device_login.DeviceLoginStart.as_view()),
    path("device-login/token/", device_login.DeviceLoginToken.as_view()),
    path("secrets/", secrets.SecretList.as_view()),
    path("secrets/<str:name>/", secrets.SecretDetail.as_view()),
    path("notification-channels/", channels.ChannelList.as_view()),
    path("notification-channels/<int:pk>/", channels.ChannelDetail.as_view()),
    path("notification-channels/<int:pk>/test/", channels.ChannelTest.as_view()),
]
