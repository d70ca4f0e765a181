"""What the pages show of tokens for a slurmrestd."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils import timezone

from clusters.allocations import slurm_tokens, unix_accounts
from clusters.backends.slurm.rest.tokens import COMMAND
from clusters.models import Cluster, SlurmPartition, SlurmToken
from clusters.slurm_partitions.forms import SlurmTokenForm
from workspaces.models import User


@dataclass(frozen=True)
class TokenAccess:
    """`account`: whose token is needed, "" = of any plain account. `token`: the one there is."""

    account: str
    token: SlurmToken | None
    form: SlurmTokenForm

    @property
    def state(self) -> str:
        """Returns "missing", "expired", "ending" or "valid"."""
        now = timezone.now()
        if self.token is None:
            return "missing"
        if self.token.expires_at <= now:
            return "expired"
        return "ending" if slurm_tokens.ends_soon(self.token, now) else "valid"

    @property
    def command(self) -> str:
        return COMMAND


def own_access(cluster: Cluster, person: User, refused: SlurmTokenForm | None = None) -> TokenAccess | None:
    """Returns None where no token is needed, and for people without an account there. `refused`: the form, if
    it was sent and not taken."""
    account = unix_accounts.account_of(cluster, person)
    if not account or not _has_slurmrestd(cluster):
        return None
    return TokenAccess(account, slurm_tokens.token_of(cluster, person), refused or SlurmTokenForm())


def observer_access(cluster: Cluster, refused: SlurmTokenForm | None = None) -> TokenAccess | None:
    """Returns None where no token is needed. `refused`: as of `own_access`."""
    if not _has_slurmrestd(cluster):
        return None
    return TokenAccess("", slurm_tokens.token_of(cluster, None), refused or SlurmTokenForm())


def _has_slurmrestd(cluster: Cluster) -> bool:
    return SlurmPartition.objects.filter(cluster=cluster).exclude(rest_url="").exists()
