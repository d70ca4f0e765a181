"""The tokens with which the hub speaks to slurmrestd: one of each person, and one of an observer for what the
hub itself wants to know. Their values are secrets of the hub.

Only Slurm can tell whether a token is genuine; whose it says it is and when it ends are read here."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.urls import reverse
from django.utils import timezone

from clusters.allocations import unix_accounts
from clusters.backends.slurm.errors import SlurmError, SlurmFault
from clusters.backends.slurm.rest.http_calls import RestCalls, RestServer
from clusters.backends.slurm.rest.tokens import COMMAND, SlurmTokenRefused, TokenClaims, parse_token
from clusters.models import Cluster, SlurmPartition, SlurmToken
from clusters.task_messages import send_task_soon
from trainhub_launch.errors import SpecError
from workspaces import audit
from workspaces.models import User
from workspaces.secrets import hub_secrets, store
from workspaces.secrets.errors import SecretsUnavailable
from workspaces.task_names import TaskName

FIELD = "token"
CHECK_WITHIN_S = 5.0
# How long before its end a token is said to end soon; of a short one, a quarter of its life.
WARN_BEFORE = timedelta(hours=24)


def token_of(cluster: Cluster, person: User | None) -> SlurmToken | None:
    """Returns the token of a person, or the observer's. It may have expired."""
    return SlurmToken.objects.filter(cluster=cluster, person=person).first()


def server_of(row: SlurmPartition) -> RestServer:
    return RestServer(row.rest_url.rstrip("/"), row.rest_ca)


def calls_of_observer(row: SlurmPartition) -> RestCalls:
    """Raises SlurmError if there is no token that can be used."""
    token = token_of(row.cluster, None)
    if token is None or token.expires_at <= timezone.now():
        what = (
            "has no token yet"
            if token is None
            else f"had a token until {token.expires_at:%Y-%m-%d %H:%M} UTC"
        )
        raise SlurmError(
            SlurmFault.TOKEN,
            f"The hub {what} with which it could look at this Slurm. An operator has to make one as a plain "
            f"account ({COMMAND}), and enter it at {settings_page(row.cluster)}.",
        )
    return RestCalls(server_of(row), token.account, _value(token))


def calls_of_person(row: SlurmPartition, account: str, person: User | None) -> RestCalls:
    """Raises SlurmError if the person has entered no token of this account that can be used."""
    token = None if person is None else token_of(row.cluster, person)
    if unix_accounts.account_of(row.cluster, person) != account:
        # A job of an earlier entry of the table: no token of theirs would be taken for it.
        raise SlurmError(
            SlurmFault.TOKEN,
            f"The table of {row.cluster.name} has the account {account} no more for "
            f"{person or 'whoever submitted this'}, so the hub cannot act as {account} in Slurm. An operator "
            "can enter it again, or cancel the job there with scancel.",
        )
    if token is None or token.account != account or token.expires_at <= timezone.now():
        who = person.get_username() if person else account
        has = token is not None and token.account == account
        what = "The token" if has else "The hub has no token"
        end = f" expired at {token.expires_at:%Y-%m-%d %H:%M} UTC" if has and token else ""
        raise SlurmError(
            SlurmFault.TOKEN,
            f"{what} of {account} for Slurm{end}. On a login node, {who} has to run '{COMMAND}' as {account} "
            f"and enter the line that it prints at {token_page(row.cluster)}.",
        )
    return RestCalls(server_of(row), token.account, _value(token))


def store_person_token(cluster: Cluster, person: User, text: str) -> SlurmToken:
    """Keeps the token of a person for their own account, in place of an earlier one. What waited for it goes
    on. Raises SpecError."""
    account = unix_accounts.account_of(cluster, person)
    if not account:
        raise SpecError(FIELD, unix_accounts.no_account_sentence(cluster, person))
    claims = _checked(cluster, text)
    if claims.account != account:
        raise SpecError(
            FIELD,
            f"This is a token of {claims.account}, and your runs here are jobs of {account}: make it as "
            "that account.",
        )
    token = _keep(cluster, person, claims)
    audit.record(
        person, "cluster.slurm-token", cluster.name, account=account, until=claims.expires_at.isoformat()
    )
    # What was canceled meanwhile can be told to Slurm now.
    send_task_soon(TaskName.TEND_BACKENDS)
    return token


def store_observer_token(cluster: Cluster, text: str, who: User) -> SlurmToken:
    """Keeps the token with which the hub looks at the Slurm. Raises SpecError."""
    claims = _checked(cluster, text)
    token = _keep(cluster, None, claims)
    audit.record(
        who,
        "cluster.observer-token",
        cluster.name,
        account=claims.account,
        until=claims.expires_at.isoformat(),
    )
    send_task_soon(TaskName.TEND_BACKENDS)
    return token


def remove_token(cluster: Cluster, person: User | None, who: User) -> bool:
    """Returns whether there was one."""
    token = token_of(cluster, person)
    if token is None:
        return False
    with transaction.atomic():
        _delete(token)
        verb = "cluster.slurm-token" if person else "cluster.observer-token"
        audit.record(who, verb, cluster.name, account=token.account, until="")
    return True


def forget_tokens(cluster: Cluster) -> None:
    """Deletes all tokens of the cluster: they must not go to another server."""
    for token in SlurmToken.objects.filter(cluster=cluster):
        _delete(token)


def forget_other_account(cluster: Cluster, person: User, account: str) -> None:
    """Deletes the token of the person if it is of another account."""
    token = token_of(cluster, person)
    if token is not None and token.account != account:
        _delete(token)


def ends_soon(token: SlurmToken, now: datetime) -> bool:
    life = token.expires_at - token.stored_at
    return now >= token.expires_at - min(WARN_BEFORE, life / 4)


def token_page(cluster: Cluster) -> str:
    return f"{settings.PUBLIC_URL}{reverse('cluster', args=[cluster.name])}#slurm-token"


def settings_page(cluster: Cluster) -> str:
    return f"{settings.PUBLIC_URL}{reverse('cluster-edit', args=[cluster.name])}#observer-token"


def _checked(cluster: Cluster, text: str) -> TokenClaims:
    """Returns what the token says, if Slurm accepts it or cannot be asked. Raises SpecError."""
    row = SlurmPartition.objects.select_related("cluster").get(cluster=cluster)
    if not row.rest_url:
        raise SpecError(FIELD, f"{cluster.name} takes no tokens: its Slurm is asked by commands.")
    try:
        claims = parse_token(text)
    except SlurmTokenRefused as error:
        raise SpecError(FIELD, str(error)) from error
    if claims.expires_at <= timezone.now():
        raise SpecError(
            FIELD, f"This token expired at {claims.expires_at:%Y-%m-%d %H:%M} UTC. Make a new one: {COMMAND}"
        )
    try:
        RestCalls(server_of(row), claims.account, claims.value, CHECK_WITHIN_S).check_token()
    except SlurmError as error:
        if error.fault is SlurmFault.TOKEN:
            raise SpecError(FIELD, str(error)) from error
    return claims


def _keep(cluster: Cluster, person: User | None, claims: TokenClaims) -> SlurmToken:
    try:
        store.make_keyring()
        with transaction.atomic():
            token, _ = SlurmToken.objects.update_or_create(
                cluster=cluster,
                person=person,
                defaults={
                    "account": claims.account,
                    "expires_at": claims.expires_at,
                    "stored_at": timezone.now(),
                    "warned_at": None,
                },
            )
            hub_secrets.put(_secret_name(token), claims.value)
    except SecretsUnavailable as error:
        raise SpecError(FIELD, f"The hub cannot keep it: {error.message}.") from error
    return token


def _delete(token: SlurmToken) -> None:
    hub_secrets.delete(_secret_name(token))
    token.delete()


def _value(token: SlurmToken) -> str:
    try:
        return hub_secrets.value_of(_secret_name(token))
    except SecretsUnavailable as error:
        sentence = f"The token of {token.account} cannot be read: {error.message}. Enter it again."
        raise SlurmError(SlurmFault.TOKEN, sentence) from error


def _secret_name(token: SlurmToken) -> str:
    return f"slurm-token-{token.cluster_id}-{token.person_id or 'observer'}"
