"""Describes API tokens in the OpenAPI schema; importing this module registers it."""

from __future__ import annotations

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "workspaces.api.authentication.TokenAuthentication"
    name = "token"

    # The parameters are those that spectacular passes.
    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:  # noqa: ARG002
        return {"type": "http", "scheme": "bearer", "description": "A token made under Settings."}
