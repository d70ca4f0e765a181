from __future__ import annotations

from django.urls import path

from workspaces import membership_views as memberships
from workspaces import views
from workspaces.authentication import views as authentication
from workspaces.notifications import views as notifications

urlpatterns = [
    path("sign-in/", authentication.SignIn.as_view(), name="sign-in"),
    path("sign-out/", authentication.SignOut.as_view(), name="sign-out"),
    path("settings/", views.settings, name="settings"),
    path("settings/password/", authentication.password, name="password"),
    path("settings/sessions/end-others/", authentication.sessions_end_others, name="sessions-end-others"),
    path("settings/sessions/<int:pk>/end/", authentication.session_end, name="session-end"),
    path("settings/confirm/", authentication.confirm_password, name="confirm-password"),
    path("settings/tokens/", views.token_create, name="token-create"),
    path("settings/tokens/<int:pk>/revoke/", views.token_revoke, name="token-revoke"),
    path("settings/notifications/", notifications.listed, name="channels"),
    path("settings/notifications/add/<slug:scope>/", notifications.added, name="channel-add"),
    path("settings/notifications/<int:pk>/", notifications.changed, name="channel-change"),
    path("settings/notifications/<int:pk>/test/", notifications.tested, name="channel-test"),
    path("settings/notifications/<int:pk>/delete/", notifications.channel_deleted, name="channel-delete"),
    path("settings/members/", views.member_add, name="member-add"),
    path("settings/members/<int:pk>/role/", views.member_role, name="member-role"),
    path("settings/members/<int:pk>/remove/", views.member_remove, name="member-remove"),
    path(
        "settings/members/invitations/<int:pk>/withdraw/",
        memberships.invitation_withdraw,
        name="invitation-withdraw",
    ),
    path("invitations/", memberships.invitations, name="invitations"),
    path("invitations/<int:pk>/accept/", memberships.invitation_accept, name="invitation-accept"),
    path("invitations/<int:pk>/decline/", memberships.invitation_decline, name="invitation-decline"),
    path("workspaces/<int:pk>/choose/", memberships.workspace_choose, name="workspace-choose"),
]
