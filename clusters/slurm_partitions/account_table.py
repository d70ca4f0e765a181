"""The table of a cluster: under which Unix account the runs of a person are."""

from __future__ import annotations

from clusters.allocations import slurm_tokens, unix_accounts
from clusters.models import Cluster, UnixAccount
from trainhub_launch.errors import SpecError
from workspaces.models import User


def account_rows(cluster: Cluster) -> list[UnixAccount]:
    """Returns the entries, by the names of the people."""
    rows = UnixAccount.objects.filter(cluster=cluster).select_related("person")
    return list(rows.order_by("person__username"))


def person_of(username: str) -> User:
    """Raises SpecError if there is no such person."""
    person = User.objects.filter(username=username).first()
    if person is None:
        raise SpecError("person", f"there is no person {username!r}; the page People lists all")
    return person


def set_unix_account(cluster: Cluster, username: str, account: str, by: User) -> UnixAccount:
    """Enters or changes the account of a person. Raises SpecError for `person` or `account`."""
    person = person_of(username)
    if not account:
        raise SpecError("account", "enter a Unix account; to end an entry, remove it")
    try:
        unix_accounts.set_account(cluster, person, account, by)
    except SpecError as error:
        raise SpecError("account", error.message) from error
    slurm_tokens.forget_other_account(cluster, person, account)
    return UnixAccount.objects.select_related("person").get(cluster=cluster, person=person)


def remove_unix_account(cluster: Cluster, username: str, by: User) -> bool:
    """Returns whether there was an entry. Raises SpecError if there is no such person."""
    person = person_of(username)
    if not UnixAccount.objects.filter(cluster=cluster, person=person).exists():
        return False
    unix_accounts.set_account(cluster, person, "", by)
    slurm_tokens.forget_other_account(cluster, person, "")
    return True
