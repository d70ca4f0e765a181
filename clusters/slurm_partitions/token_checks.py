"""Whether the tokens for a slurmrestd can be used: the observer's, and those of people."""

from __future__ import annotations

from dataclasses import replace

from django.utils import timezone

from clusters.allocations import slurm_tokens
from clusters.allocations.bounded_commands import PAGE_TIMEOUT_S
from clusters.backends.slurm.errors import SlurmError
from clusters.backends.slurm.examination import CheckResult, SlurmCheck
from clusters.models import SlurmPartition, SlurmToken, UnixAccount


def check_observer(row: SlurmPartition) -> list[SlurmCheck]:
    """Raises SlurmError if the hub cannot look at the Slurm at all."""
    calls = slurm_tokens.calls_of_observer(row)
    replace(calls, max_s=PAGE_TIMEOUT_S).check_token()
    token = SlurmToken.objects.get(cluster=row.cluster_id, person=None)
    end = f"{token.expires_at:%Y-%m-%d %H:%M} UTC"
    sentence = f"{row.rest_url} answers, and the hub looks as {token.account} until {end}."
    if slurm_tokens.ends_soon(token, timezone.now()):
        return [SlurmCheck("token", CheckResult.WARNING, f"{sentence} Enter a new token before.")]
    return [SlurmCheck("token", CheckResult.OK, sentence)]


def problems_of_tokens(row: SlurmPartition) -> dict[str, str]:
    """Returns why the hub cannot submit as each account by slurmrestd, "" if it can."""
    problems: dict[str, str] = {}
    for entry in UnixAccount.objects.filter(cluster=row.cluster_id).select_related("person"):
        try:
            slurm_tokens.calls_of_person(row, entry.name, entry.person)
            problems[entry.name] = ""
        except SlurmError as error:
            # Of several people with one account it is enough that one has a token.
            problems.setdefault(entry.name, str(error))
    return problems
