"""Reads the settings of signing in: OpenID Connect, a proxy's header, groups, passwords, second factors."""

from __future__ import annotations

import ipaddress
from typing import Any
from urllib.parse import urlsplit

from trainhub import env
from workspaces.authentication.external.configuration import (
    ExternalSignIn,
    GroupMapping,
    Network,
    OidcProvider,
    UserHeader,
    read_mapping,
)

OIDC_APP = "allauth.socialaccount.providers.openid_connect"
USER_HEADER_MIDDLEWARE = "workspaces.authentication.external.user_header.UserHeaderSignIn"
OWN_MACHINE = ("localhost", "127.0.0.1", "::1")


def external_sign_in() -> ExternalSignIn:
    """Returns what the environment variables say. Raises EnvError if they contradict each other."""
    oidc, header = _oidc(), _header()
    has_passwords = env.boolean("PASSWORD_SIGN_IN", True)
    if not has_passwords and not oidc.issuer and not header.name:
        raise env.EnvError("PASSWORD_SIGN_IN=0 lets nobody in without OIDC_ISSUER or REMOTE_USER_HEADER")
    return ExternalSignIn(
        oidc=oidc,
        header=header,
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


def middleware(sign_in: ExternalSignIn) -> list[str]:
    """Returns the middleware that these apps require, and that reads the proxy's header, as far as they are
    needed. They stand last."""
    return [
        *(["allauth.account.middleware.AccountMiddleware"] if sign_in.oidc.issuer else []),
        *([USER_HEADER_MIDDLEWARE] if sign_in.header.name else []),
    ]


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


def _header() -> UserHeader:
    header = UserHeader(
        name=env.text("REMOTE_USER_HEADER", ""),
        proxies=tuple(_network(word) for word in env.split_words("REMOTE_USER_PROXIES")),
        mail=env.text("REMOTE_USER_MAIL_HEADER", ""),
        display_name=env.text("REMOTE_USER_NAME_HEADER", ""),
        groups=env.text("REMOTE_USER_GROUPS_HEADER", ""),
    )
    if header.name and not header.proxies:
        raise env.EnvError(
            "REMOTE_USER_HEADER needs REMOTE_USER_PROXIES, the addresses of the proxies: without it anybody "
            "could sign in as anybody"
        )
    return header


def _groups() -> GroupMapping:
    try:
        return read_mapping(env.text("SIGN_IN_GROUPS", ""))
    except ValueError as error:
        raise env.EnvError(f"SIGN_IN_GROUPS: {error}") from error


def _network(word: str) -> Network:
    try:
        return ipaddress.ip_network(word)
    except ValueError as error:
        raise env.EnvError(
            f"REMOTE_USER_PROXIES={word} must list addresses or networks, separated by commas, for example "
            "127.0.0.1,10.0.0.0/24"
        ) from error
