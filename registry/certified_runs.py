"""Runs whose data retention rules keep, because a registered model was made by them."""

from __future__ import annotations

from django.db.models import Exists, OuterRef, Q

from jobs.retention_rules.protections import Protection
from registry.models import ModelVersion
from workspaces.models import Workspace


def _has_version(_: Workspace) -> Q:
    """The runs that certificates name: the version's own, and the job whose process logged it."""
    versions = ModelVersion.objects.all()
    own = Exists(versions.filter(run=OuterRef("pk")))
    logged_by_it = Exists(versions.filter(run__parent=OuterRef("pk")))
    return Q(own) | Q(logged_by_it)


PROTECTION = Protection("model", "a registered model and its certificate name it", _has_version)
