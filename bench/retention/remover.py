"""Removes what the rules in force say, as the worker does: a process of its own. Prints of how many runs,
each kind counted by itself."""

from __future__ import annotations

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "trainhub.settings")
django.setup()

from jobs.models import RetentionRule, RuleInForce  # noqa: E402 - only now are the settings there
from jobs.retention_rules import removal_round  # noqa: E402


def main() -> None:
    for row in RuleInForce.objects.all():
        # So that the round finds that the owners want what is in force.
        RetentionRule.objects.update_or_create(
            workspace=row.workspace, kind=row.kind, defaults={"days": row.days, "changed_by": "bench"}
        )
    print(removal_round.remove_due(max_s=3600))


if __name__ == "__main__":
    main()
