"""Proof that somebody has seen the preview of exactly these rules before they set them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict

from django.core import signing

from jobs.retention_rules.rules import HubRule, Rule
from jobs.states import DataKind
from trainhub_launch.errors import SpecError
from workspaces.models import Workspace

SALT = "trainhub.retention"
MAX_AGE_S = 3600


def subject_of(
    workspace: Workspace | None, choices: Mapping[DataKind, Rule | None] | Mapping[DataKind, HubRule]
) -> str:
    """Returns what a confirmation is for: these rules of this workspace (None: of all)."""
    rules = {str(kind): None if choice is None else asdict(choice) for kind, choice in choices.items()}
    text = json.dumps([None if workspace is None else workspace.pk, rules], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def sign(subject: str) -> str:
    """Returns the confirmation that a preview contains."""
    return signing.dumps(subject, salt=SALT)


def check(confirmation: str, subject: str) -> None:
    """Raises SpecError unless the confirmation is for this, and younger than an hour."""
    try:
        is_right = signing.loads(confirmation, salt=SALT, max_age=MAX_AGE_S) == subject
    except signing.BadSignature:
        is_right = False
    if not is_right:
        raise SpecError(
            "confirmation",
            "is missing, older than an hour, or for other rules: these remove more than those in force, so "
            "ask for their preview first, and send the confirmation that it contains",
        )
