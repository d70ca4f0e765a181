"""What members of the workspace name: a secret, and a datastore."""

from __future__ import annotations

from datastores.models import Datastore
from workspaces.access import Principal
from workspaces.models import Secret


def named_objects_of(who: Principal) -> dict[str, dict[str, object]]:
    """Makes one of each. Returns what fills their routes."""
    secret = Secret.objects.create(
        workspace=who.workspace, name="hf-token", sealed=b"sealed", changed_by=who.user.get_username()
    )
    Datastore.objects.create(workspace=who.workspace, name="images", path="/mnt/images")
    return {
        "/settings/secrets/": {"pk": secret.pk},
        "/api/v1/secrets/": {"name": secret.name},
        "/api/v1/datastores/": {"name": "images"},
        "/data/datastores/": {"name": "images"},
    }
