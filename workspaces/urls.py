from __future__ import annotations

from django.urls import path

from workspaces import membership_views as memberships
from workspaces import views
from workspaces.administration import account_views as accounts
from workspaces.administration import workspace_views as workspaces
from workspaces.audit_trail import views as audit
from workspaces.authentication import token_views
from workspaces.authentication import views as authentication
from workspaces.authentication.external import oidc_views as oidc
from workspaces.authentication.factors import setup_views as factors
from workspaces.authentication.factors.step_views import second_step_page
from workspaces.device_login import views as device_login
from workspaces.mail import invitation_views as invitation_links
from workspaces.mail import profile_views as profiles
from workspaces.notifications import views as notifications
from workspaces.secrets import views as secrets
from workspaces.service_accounts import views as service_accounts

urlpatterns = [
    path("sign-in/", authentication.SignIn.as_view(), name="sign-in"),
    path("sign-out/", authentication.SignOut.as_view(), name="sign-out"),
    path("settings/", views.settings, name="settings"),
    path("settings/password/", authentication.password, name="password"),
    path("settings/sessions/end-others/", authentication.sessions_end_others, name="sessions-end-others"),
    path("settings/sessions/<int:pk>/end/", authentication.session_end, name="session-end"),
    path("settings/confirm/", authentication.confirm_password, name="confirm-password"),
    path("settings/factors/", factors.factors, name="factors"),
    path("settings/factors/app/", factors.totp_begin, name="totp-begin"),
    path("settings/factors/app/confirm/", factors.totp_confirm, name="totp-confirm"),
    path("settings/factors/app/remove/", factors.totp_remove, name="totp-remove"),
    path("settings/factors/passkeys/", factors.passkey_begin, name="passkey-begin"),
    path("settings/factors/passkeys/add/", factors.passkey_add, name="passkey-add"),
    path("settings/factors/passkeys/<int:pk>/remove/", factors.passkey_remove, name="passkey-remove"),
    path("settings/factors/recovery/", factors.recovery_create, name="recovery-create"),
    path("settings/profile/", profiles.profile, name="profile"),
    path("settings/profile/mail/", profiles.mail_request, name="mail-request"),
    path("settings/profile/mail/remove/", profiles.mail_remove, name="mail-remove"),
    path("settings/invitations/", invitation_links.invitations, name="invitation-links"),
    path("settings/invitations/create/", invitation_links.invitation_create, name="invitation-link-create"),
    path(
        "settings/invitations/<int:pk>/withdraw/",
        invitation_links.invitation_link_withdraw,
        name="invitation-link-withdraw",
    ),
    path("settings/tokens/", views.token_create, name="token-create"),
    path("settings/tokens/<int:pk>/revoke/", views.token_revoke, name="token-revoke"),
    path("settings/tokens/all/", token_views.workspace_tokens, name="workspace-tokens"),
    path(
        "settings/tokens/all/<int:pk>/revoke/",
        token_views.workspace_token_revoke,
        name="workspace-token-revoke",
    ),
    path("settings/service-accounts/", service_accounts.service_accounts, name="service-accounts"),
    path(
        "settings/service-accounts/create/",
        service_accounts.service_account_create,
        name="service-account-create",
    ),
    path("settings/service-accounts/<int:pk>/", service_accounts.service_account, name="service-account"),
    path(
        "settings/service-accounts/<int:pk>/role/",
        service_accounts.service_account_role,
        name="service-account-role",
    ),
    path(
        "settings/service-accounts/<int:pk>/state/",
        service_accounts.service_account_state,
        name="service-account-state",
    ),
    path(
        "settings/service-accounts/<int:pk>/delete/",
        service_accounts.service_account_delete,
        name="service-account-delete",
    ),
    path(
        "settings/service-accounts/<int:pk>/tokens/",
        service_accounts.service_token_create,
        name="service-token-create",
    ),
    path(
        "settings/service-accounts/<int:pk>/tokens/<int:token_id>/revoke/",
        service_accounts.service_token_revoke,
        name="service-token-revoke",
    ),
    path("settings/notifications/", notifications.listed, name="channels"),
    path("settings/notifications/add/<slug:scope>/", notifications.added, name="channel-add"),
    path("settings/notifications/<int:pk>/", notifications.changed, name="channel-change"),
    path("settings/notifications/<int:pk>/test/", notifications.tested, name="channel-test"),
    path("settings/notifications/<int:pk>/delete/", notifications.channel_deleted, name="channel-delete"),
    path("settings/secrets/", secrets.secrets, name="secrets"),
    path("settings/secrets/store/", secrets.secret_store, name="secret-store"),
    path("settings/secrets/<int:pk>/", secrets.secret, name="secret"),
    path("settings/secrets/<int:pk>/delete/", secrets.secret_delete, name="secret-delete"),
    path("device/", device_login.device, name="device"),
    path("device/answer/", device_login.answer, name="device-answer"),
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
    path("workspaces/", workspaces.workspaces, name="workspaces"),
    path("workspaces/create/", workspaces.create, name="workspace-create"),
    path("workspaces/<int:pk>/rename/", workspaces.rename, name="workspace-rename"),
    path("workspaces/<int:pk>/archive/", workspaces.archive, name="workspace-archive"),
    path("workspaces/<int:pk>/restore/", workspaces.restore, name="workspace-restore"),
    path("workspaces/<int:pk>/join/", workspaces.join, name="workspace-join"),
    path("audit/", audit.audit_page, name="audit"),
    path("audit/csv/", audit.audit_csv, name="audit-csv"),
    path("people/", accounts.people, name="people"),
    path("people/<int:pk>/", accounts.person, name="person"),
    path("people/<int:pk>/link/", accounts.create_link, name="person-link"),
    path("people/<int:pk>/operator/", accounts.set_operator, name="person-operator"),
    path("people/<int:pk>/factors/reset/", accounts.reset_factors, name="person-reset-factors"),
    path(
        "people/<int:pk>/accounts/<int:account_id>/disconnect/",
        accounts.disconnect_account,
        name="person-disconnect",
    ),
    path("people/<int:pk>/deactivate/", accounts.deactivate, name="person-deactivate"),
    path("people/<int:pk>/activate/", accounts.activate, name="person-activate"),
    path("sign-in/second-step/", second_step_page, name="second-step"),
    path("sign-in/oidc/", oidc.oidc_begin, name="oidc-begin"),
    path("sign-in/oidc/callback/", oidc.oidc_callback, name="oidc-callback"),
    path("settings/profile/connect/", oidc.oidc_connect, name="oidc-connect"),
    path(
        "settings/profile/accounts/<int:pk>/disconnect/",
        profiles.account_disconnect,
        name="account-disconnect",
    ),
    path("sign-in/forgot/", profiles.password_forgot, name="password-forgot"),
    path("sign-in/mail/<str:text>/", profiles.mail_confirm, name="mail-confirm"),
    path("sign-in/invitation/<str:text>/", invitation_links.invitation_open, name="invitation-link"),
    path("sign-in/link/<str:text>/", accounts.choose_password, name="password-link"),
]
