"""Reads the settings of signing in: OpenID Connect, a proxy's header, groups, passwords, second factors."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from trainhub import env
from workspaces.authentication.external.configuration import (
    ExternalSignIn,
    GroupMapping,
    OidcProvider,
    read_mapping,
)

OWN_MACHINE = ("localhost", "127.0.0.1", "::1")


def external_sign_in() -> ExternalSignIn:
    """Returns what the environment variables say. Raises EnvError if they contradict each other."""
    oidc = _oidc()
    has_passwords = env.boolean("PASSWORD_SIGN_IN", True)
    if not has_passwords and not oidc.issuer:
        raise env.EnvError("PASSWORD_SIGN_IN=0 lets nobody in without OIDC_ISSUER")
    return ExternalSignIn(
        oidc=oidc,
        groups=_groups(),
        makes_accounts=env.boolean("SIGN_IN_NEW_ACCOUNTS", True),
        has_passwords=has_passwords,
        operators_need_second_factor=env.boolean("OPERATORS_NEED_SECOND_FACTOR", False),
    )


def oidc_apps(sign_in: ExternalSignIn) -> list[str]:
    """Returns the Django apps that OpenID Connect needs. They take memory, so a hub without it goes
    without."""
    if not sign_in.oidc.issuer:
        return []
    return ["allauth", "allauth.account", "allauth.socialaccount", OIDC_APP]


def oidc_middleware(sign_in: ExternalSignIn) -> list[str]:
    """Returns the middleware that these apps require."""
    return ["allauth.account.middleware.AccountMiddleware"] if sign_in.oidc.issuer else []


def allauth_provider(sign_in: ExternalSignIn) -> dict[str, Any]:
    """Returns the setting SOCIALACCOUNT_PROVIDERS."""
    oidc = sign_in.oidc
    app = {
        "provider_id": "oidc",
        "name": oidc.name,
        "client_id": oidc.client_id,
        "secret": oidc.client_secret,
        "settings": {"server_url": oidc.issuer, "scope": list(oidc.scopes), "oauth_pkce_enabled": True},
    }
    return {"openid_connect": {"OAUTH_PKCE_ENABLED": True, "APPS": [app]}} if oidc.issuer else {}


OIDC_APP = "allauth.socialaccount.providers.openid_connect"


def _oidc() -> OidcProvider:
    issuer = env.text("OIDC_ISSUER", "").rstrip("/")
    provider = OidcProvider(
        issuer=issuer,
        client_id=env.text("OIDC_CLIENT_ID", ""),
        client_secret=env.secret("OIDC_CLIENT_SECRET"),
        name=env.text("OIDC_NAME", OidcProvider.name),
        scopes=tuple(env.split_words("OIDC_SCOPES", ",".join(OidcProvider.scopes))),
        groups_claim=env.text("OIDC_GROUPS_CLAIM", OidcProvider.groups_claim),
    )
    if not issuer:
        return OidcProvider()
    parts = urlsplit(issuer)
    # The token comes over this connection, so TLS is what proves where it comes from.
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in OWN_MACHINE):
        raise env.EnvError(f"OIDC_ISSUER={issuer} must be an https:// address")
    if not provider.client_id or not provider.client_secret:
        raise env.EnvError("OIDC_ISSUER needs OIDC_CLIENT_ID and OIDC_CLIENT_SECRET")
    if "openid" not in provider.scopes:
        raise env.EnvError("OIDC_SCOPES must contain openid")
    return provider


def _groups() -> GroupMapping:
    try:
        return read_mapping(env.text("SIGN_IN_GROUPS", ""))
    except ValueError as error:
        raise env.EnvError(f"SIGN_IN_GROUPS: {error}") from error
