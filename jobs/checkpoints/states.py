"""The states of a checkpoint: collecting -> complete | unconfirmed | torn, and then discarded (-> shared) if
it lies in a datastore, or removed."""

from __future__ import annotations

from django.db import models


class CheckpointState(models.TextChoices):
    """COLLECTING: the parts of some nodes are missing. COMPLETE: all are here, and a sign said that the ranks
    had written all of it. UNCONFIRMED: all are here, but nothing says that the ranks were done; only a person
    may choose it. TORN: it changed while it was saved, or a node was lost; nothing of it is kept. DISCARDED:
    it is not kept any more, and a node has yet to remove it from the datastore. SHARED: it is not kept any
    more, and nothing of it is left there but files that other checkpoints of the run have, too. Nobody is
    shown these two. REMOVED: a retention rule has removed its files."""

    COLLECTING = "collecting"
    COMPLETE = "complete"
    UNCONFIRMED = "unconfirmed"
    TORN = "torn"
    DISCARDED = "discarded"
    SHARED = "shared"
    REMOVED = "removed"


# With which a run may begin.
USABLE = (CheckpointState.COMPLETE, CheckpointState.UNCONFIRMED)
# Nobody is shown those.
HIDDEN = (CheckpointState.DISCARDED, CheckpointState.SHARED)
