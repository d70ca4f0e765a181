"""The value of the secret with which a datastore is read."""

from __future__ import annotations

from datastores.models import Datastore
from trainhub_launch.data.stores import SignIn
from workspaces.models import User
from workspaces.secrets import uses


def store_secret(datastore: Datastore, kind: str, subject: str, actor: User | None, node: str = "") -> str:
    """Returns the value, "" without one, and records the use (see workspaces.secrets.uses). Raises
    SecretsUnavailable."""
    if datastore.is_mounted or datastore.sign_in != SignIn.SECRET:
        return ""
    name = datastore.secret
    values = uses.take(datastore.workspace, None, [name], kind, subject, node, actor=actor)
    return values[name]
