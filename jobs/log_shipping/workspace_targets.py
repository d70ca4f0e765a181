"""The log system of a workspace, which its owners name, change, test and remove."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils import timezone

from jobs.log_shipping import destinations, targets
from jobs.log_shipping.destinations import DestinationError
from jobs.log_shipping.models import LogTarget
from workspaces import audit
from workspaces.access import Principal
from workspaces.notifications.url_policy import UrlError, check_url
from workspaces.secrets import placeholders, store

# Headers whose values are secret by their names.
SECRET_WORDS = ("authorization", "token", "key", "secret", "password", "cookie")
FIELDS = ("kind", "url", "headers", "labels", "ca")


def target_of(who: Principal) -> LogTarget | None:
    return LogTarget.objects.filter(workspace=who.workspace).select_related("workspace").first()


def store_target(who: Principal, fields: Mapping[str, str]) -> LogTarget:
    """Names the log system of the workspace, or changes the fields that are given. Raises DestinationError.

    A new one gets the attempts that begin from now on."""
    target = target_of(who)
    now = timezone.now()
    if target is None:
        target = LogTarget(workspace=who.workspace, since=now, try_at=now)
    for name in FIELDS:
        if name in fields:
            setattr(target, name, fields[name].strip().replace("\r\n", "\n"))
    target.kind = destinations.parse_kind(target.kind)
    target.url = destinations.parse_url(target.kind, target.url)
    _check_url(target.url)
    _check_headers(who, target.headers)
    destinations.parse_labels(target.labels)
    target.ca = destinations.parse_ca(target.ca)
    target.try_at = now
    is_new = target.pk is None
    if is_new:
        target.save()
        targets.start_from(target, now)
    else:
        target.save(update_fields=[*FIELDS, "try_at"])
    audit.record(
        who.user, "log_target.stored", targets.state_of(target).host, who.workspace, kind=target.kind
    )
    return target


def remove_target(who: Principal, target: LogTarget) -> None:
    audit.record(who.user, "log_target.removed", targets.state_of(target).host, who.workspace)
    target.delete()


def request_test(who: Principal, target: LogTarget) -> None:
    """Has the worker send a line, with the next round: it is the worker that must reach the log system."""
    LogTarget.objects.filter(pk=target.pk).update(
        test_by=who.user.get_username()[:150], test_result="", try_at=timezone.now()
    )


def _check_url(url: str) -> None:
    try:
        check_url(url)
    except UrlError as error:
        raise DestinationError("url", str(error)) from error


def _check_headers(who: Principal, text: str) -> None:
    destinations.parse_headers(placeholders.blank(text))
    for line in text.splitlines():
        name = line.partition(":")[0].strip()
        is_secret = any(word in name.lower() for word in SECRET_WORDS)
        if is_secret and not placeholders.names_in(line):
            raise DestinationError(
                "headers",
                f"show their values to every owner; name a stored secret, such as {name}: {{secret:NAME}}",
            )
    names = placeholders.names_in(text)
    missing = sorted(names - store.resolve(who.workspace, None, names).keys())
    if missing:
        raise DestinationError(
            "headers",
            f"names a secret that the workspace does not have: {', '.join(missing)}; store it for the "
            "workspace, under Settings",
        )
