"""Tags of runs, set by users and scripts."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from jobs.models import Run, RunTag
from trainhub_launch.errors import SpecError

MAX_KEY_LENGTH = 250
MAX_TAGS = 10_000
# Number of characters of a value that the search index covers.
INDEXED_LENGTH = 200


def set_tags(run: Run, tags: Mapping[str, str]) -> None:
    """Sets tags; existing ones get the new value. Raises SpecError for too many tags or too long keys."""
    if not tags:
        return
    too_long = next((key for key in tags if len(key) > MAX_KEY_LENGTH), None)
    if too_long is not None:
        raise SpecError(
            "tags", f"the key {too_long[:40]}… is longer than {MAX_KEY_LENGTH} characters; shorten it"
        )
    others = RunTag.objects.filter(run=run).exclude(key__in=tags).count()
    if others + len(tags) > MAX_TAGS:
        raise SpecError("tags", f"a run may have {MAX_TAGS} tags; {others} are there already")
    rows = [
        RunTag(
            run=run,
            experiment_id=run.experiment_id,
            key=key,
            value=tags[key],
            short=tags[key][:INDEXED_LENGTH],
        )
        # The same order everywhere keeps two writers from a deadlock.
        for key in sorted(tags)
    ]
    RunTag.objects.bulk_create(
        rows, update_conflicts=True, unique_fields=["run", "key"], update_fields=["value", "short"]
    )


def delete_tags(run: Run, keys: Collection[str]) -> int:
    """Deletes tags; returns how many there were."""
    return RunTag.objects.filter(run=run, key__in=keys).delete()[0]
