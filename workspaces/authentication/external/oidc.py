"""The exchange with a provider of OpenID Connect, by django-allauth: code flow with PKCE and state.

Loaded on first use: allauth takes memory, and only a hub with OIDC_ISSUER has its apps. Of allauth only the
exchange is used; who the person is here, and what they may, is decided by `accounts`."""

# ruff: noqa: ARG002 - the parameters of methods are allauth's.
from __future__ import annotations

import threading
from typing import Any

from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter, _build_apps_from_settings
from allauth.socialaccount.models import SocialApp, SocialToken
from allauth.socialaccount.providers.base import ProviderException
from allauth.socialaccount.providers.base.constants import AuthError
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from cachetools import TTLCache
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from requests import RequestException

from workspaces import process_caches
from workspaces.authentication.external.accounts import ExternalIdentity, make_identity
from workspaces.authentication.external.exchange import Exchanged, ExchangeFailed

PROVIDER = "oidc"
WAY = "OIDC"
CANCELED = "The sign-in was canceled."
UNUSABLE = (
    "{name} gave an answer that cannot be used. Try again; if it stays so, tell an operator of this hub."
)
AWAY = "{name} cannot be reached at present. Try again later, or use another way to sign in."
# What the provider says about its addresses is asked for once in a while, not for each sign-in.
_discovery: TTLCache[str, dict[str, Any]] = TTLCache(1, 300.0)
_away: TTLCache[str, bool] = TTLCache(1, 10.0)
_lock = threading.Lock()
process_caches.register(_discovery.clear)
process_caches.register(_away.clear)


class SettingsAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]
    """Knows the one provider of the settings, and none of the database."""

    def list_apps(
        self, request: HttpRequest, provider: str | None = None, client_id: str | None = None
    ) -> list[SocialApp]:
        by_provider = _build_apps_from_settings(provider=provider, client_id=client_id)
        return [app for apps in by_provider.values() for app in apps]

    def on_authentication_error(
        self,
        request: HttpRequest,
        provider: object,
        error: object = None,
        exception: object = None,
        **_: object,
    ) -> None:
        if error == AuthError.CANCELLED:
            raise ExchangeFailed(CANCELED)
        raise _failure(exception)


class HubAdapter(OpenIDConnectOAuth2Adapter):  # type: ignore[misc]
    """Ends the exchange with the claims, before allauth would look for accounts of its own. `state`: what was
    stored when the exchange began."""

    state: dict[str, Any]

    @property
    def openid_config(self) -> dict[str, Any]:
        with _lock:
            issuer = settings.SIGN_IN.oidc.issuer
            if issuer in _away:
                raise RequestException("the provider was away a moment ago")
            if issuer not in _discovery:
                try:
                    _discovery[issuer] = super().openid_config
                except RequestException:
                    _away[issuer] = True
                    raise
            return _discovery[issuer]

    def get_callback_url(self, request: HttpRequest, app: SocialApp) -> str:
        return f"{settings.PUBLIC_URL}{reverse('oidc-callback')}"

    def complete_login(self, request: HttpRequest, app: SocialApp, token: SocialToken, **kwargs: Any) -> None:
        id_token = kwargs["response"].get("id_token")
        if not isinstance(id_token, str):
            raise ProviderException("no id_token")
        claims: dict[str, Any] = self._decode_id_token(app, id_token)
        if "userinfo_endpoint" in self.openid_config:
            info = self._fetch_user_info(token.token)
            # Otherwise claims of another person could be mixed in (OpenID Connect Core, 5.3.2).
            if not isinstance(info, dict) or info.get("sub") != claims.get("sub"):
                raise ProviderException("userinfo is about somebody else")
            claims = {**claims, **info}
        raise Exchanged(
            _identity(claims), self.state.get("next") or "", (self.state.get("data") or {}).get("connect")
        )


class HubCallback(OAuth2CallbackView):  # type: ignore[misc]
    def _get_state(self, request: HttpRequest, provider: object) -> Any:
        state, response = super()._get_state(request, provider)
        self.adapter.state = state or {}
        return state, response


def provider_address(
    request: HttpRequest, next_address: str, connect: int | None, *, asks_again: bool
) -> str:
    """Begins an exchange; returns the provider's address to which the browser has to go. `connect`: the
    person who wants to connect an account. `asks_again`: the provider asks for the password even if the
    person is signed in there. Raises ExchangeFailed."""
    adapter = HubAdapter(request, PROVIDER)
    provider = adapter.get_provider()
    provider.oauth2_adapter_class = HubAdapter
    try:
        answer = provider.redirect(
            request,
            "login",
            next_url=next_address,
            data={"connect": connect},
            auth_params={"prompt": "login"} if asks_again else {},
        )
    except (RequestException, ImmediateHttpResponse, KeyError, TypeError, ValueError) as error:
        raise _failure(error) from error
    return str(answer.headers["Location"])


def finish_exchange(request: HttpRequest) -> HttpResponse:
    """Takes the provider's answer. Always raises: Exchanged with who the person is, or ExchangeFailed."""
    view = HubCallback()
    view.request, view.adapter = request, HubAdapter(request, PROVIDER)
    try:
        return view.dispatch(request)  # type: ignore[no-any-return]
    except (RequestException, OAuth2Error, KeyError, TypeError, ValueError) as error:
        raise _failure(error) from error


def _identity(claims: dict[str, Any]) -> ExternalIdentity:
    def text(name: str) -> str:
        return str(claims.get(name) or "")

    oidc = settings.SIGN_IN.oidc
    return make_identity(
        oidc.issuer,
        text("sub"),
        WAY,
        username=text("preferred_username"),
        display_name=text("name"),
        email=text("email") if claims.get("email_verified") is True else "",
        group_names=claims.get(oidc.groups_claim),
    )


def _failure(error: object) -> ExchangeFailed:
    name = settings.SIGN_IN.oidc.name
    template = AWAY if isinstance(error, RequestException) else UNUSABLE
    sentence = template.format(name=name)
    return ExchangeFailed(f"{sentence[:1].upper()}{sentence[1:]}", str(error or ""))
