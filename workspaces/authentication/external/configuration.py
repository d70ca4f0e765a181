"""What an installation has chosen about signing in without a password of the hub. No Django here: the
settings import this module."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field

from workspaces.states import Role

# Key in an ASGI scope: the address of the other end of the connection, before any proxy's header is believed.
PEER = "trainhub.peer"
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
# Group of the provider or of the proxy -> the workspaces (short names) and roles that its members get.
GroupMapping = Mapping[str, Mapping[str, Role]]


@dataclass(frozen=True)
class OidcProvider:
    """A provider of OpenID Connect. `name`: what the button on the sign-in page calls it."""

    issuer: str = ""
    client_id: str = ""
    client_secret: str = ""
    name: str = "company account"
    scopes: tuple[str, ...] = ("openid", "profile", "email")
    groups_claim: str = "groups"


@dataclass(frozen=True)
class UserHeader:
    """A reverse proxy that signs people in and names them in a header. `name`: that header, "" for none.
    `proxies`: the only addresses from which it counts. `mail`, `display_name`, `groups`: further headers, ""
    if the proxy sends none."""

    name: str = ""
    proxies: tuple[Network, ...] = ()
    mail: str = ""
    display_name: str = ""
    groups: str = ""


@dataclass(frozen=True)
class ExternalSignIn:
    """`makes_accounts`: people who are unknown here get an account. `has_passwords`: people may sign in with
    a password of the hub. `operators_need_second_factor`: an operator without one is led to set it up."""

    oidc: OidcProvider = field(default_factory=OidcProvider)
    header: UserHeader = field(default_factory=UserHeader)
    groups: GroupMapping = field(default_factory=dict)
    makes_accounts: bool = True
    has_passwords: bool = True
    operators_need_second_factor: bool = False


def read_mapping(text: str) -> GroupMapping:
    """Returns the mapping in `GROUP=WORKSPACE:ROLE; GROUP=WORKSPACE:ROLE`; a group may occur several times.
    Raises ValueError with the part that is wrong."""
    mapping: dict[str, dict[str, Role]] = {}
    for part in filter(None, (part.strip() for part in text.replace("\n", ";").split(";"))):
        # Names in LDAP contain equals signs and commas; short names of workspaces do not.
        group, _, target = part.rpartition("=")
        workspace, _, role = target.rpartition(":")
        if not group.strip() or not workspace.strip() or role.strip() not in set(Role):
            raise ValueError(f"{part!r} must be like GROUP=WORKSPACE:ROLE, with viewer, contributor or owner")
        roles = mapping.setdefault(group.strip(), {})
        roles[workspace.strip()] = _higher(roles.get(workspace.strip()), Role(role.strip()))
    return mapping


def roles_of(groups: frozenset[str], mapping: GroupMapping) -> dict[str, Role]:
    """Returns the short names of workspaces in which members of these groups have a role, with the highest
    of their roles."""
    roles: dict[str, Role] = {}
    for group in groups:
        for workspace, role in mapping.get(group, {}).items():
            roles[workspace] = _higher(roles.get(workspace), role)
    return roles


def _higher(first: Role | None, second: Role) -> Role:
    return first if first is not None and first.covers(second) else second
