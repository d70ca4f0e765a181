"""The states of a checkpoint: collecting -> complete | unconfirmed | torn."""

from __future__ import annotations

from django.db import models


class CheckpointState(models.TextChoices):
    """COLLECTING: the parts of some nodes are missing. COMPLETE: all are here, and a sign said that the ranks
    had written all of it. UNCONFIRMED: all are here, but nothing says that the ranks were done; only a person
    may choose it. TORN: it changed while it was saved, or a node was lost; nothing of it is kept."""

    COLLECTING = "collecting"
    COMPLETE = "complete"
    UNCONFIRMED = "unconfirmed"
    TORN = "torn"
