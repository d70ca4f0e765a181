"""Orders to the hub to fetch the files of versions. Part of `jobs.models`."""

from __future__ import annotations

from django.db import models

from environments.models import EnvironmentVersion
from jobs.hub_files.states import ACTIVE_FETCHES, FetchState


class FileFetch(models.Model):
    """An order to fetch the files of a version that the hub has not stored. Only `jobs.hub_files.fetching`
    and `fetch_orders` write it. `failure`: a sentence why some could not be fetched. `attempts`: how often
    it has begun; `reported_at`: when whoever fetches last said that it goes on; `arriving_bytes`: of files
    that are on their way."""

    version = models.OneToOneField(EnvironmentVersion, models.CASCADE, related_name="file_fetch")
    state = models.CharField(
        max_length=16,
        default=FetchState.WAITING,
        choices=[(state.value, state.value) for state in FetchState],
    )
    failure = models.TextField(blank=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    arriving_bytes = models.BigIntegerField(default=0)
    ordered_at = models.DateTimeField(auto_now_add=True)
    reported_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(
                fields=["ordered_at"],
                condition=models.Q(state__in=[state.value for state in ACTIVE_FETCHES]),
                name="fetch_active",
            )
        ]

    def __str__(self) -> str:
        return f"files of {self.version}"

    @property
    def is_active(self) -> bool:
        return self.state in ACTIVE_FETCHES
