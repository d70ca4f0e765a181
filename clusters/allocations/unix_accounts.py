"""Whose Unix account a person's jobs are under. Nobody's jobs are root's, or somebody else's by mistake."""

from __future__ import annotations

from clusters.backends.slurm.settings import USER
from clusters.models import Cluster, UnixAccount
from trainhub_launch.errors import SpecError
from workspaces import audit
from workspaces.models import User


def account_of(cluster: Cluster, person: User | None) -> str:
    """Returns the account, "" if the person has none there."""
    if person is None:
        return ""
    row = UnixAccount.objects.filter(cluster=cluster, person=person).first()
    return row.name if row else ""


def no_account_sentence(cluster: Cluster, person: User | None) -> str:
    who = person.get_username() if person else "whoever submitted this run"
    return (
        f"The cluster {cluster.name} has no Unix account for {who}; ask an operator to enter one in its "
        "settings."
    )


def set_account(cluster: Cluster, person: User, name: str, by: User | str) -> None:
    """Enters the account, or removes the entry if `name` is empty. Raises SpecError."""
    if name == "root":
        raise SpecError("name", "jobs never run as root; enter a plain account")
    if name and not USER.fullmatch(name):
        raise SpecError("name", f"{name!r} cannot be the name of a Unix account")
    if name:
        UnixAccount.objects.update_or_create(cluster=cluster, person=person, defaults={"name": name})
    else:
        UnixAccount.objects.filter(cluster=cluster, person=person).delete()
    audit.record(by, "cluster.unix-account", cluster.name, person=person.get_username(), account=name)
