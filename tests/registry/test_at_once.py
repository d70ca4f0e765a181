"""Several at once, on a database that really commits: two numbers, none lost."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection

from registry import model_metadata
from registry.models import ModelVersion, RegisteredModel
from registry.registration import register
from tests.people import make_contributor, make_workspace
from tests.registry.builders import run_with

pytestmark = pytest.mark.django_db(transaction=True)
TIMES = 12


def at_once(work: Callable[[int], Any]) -> list[Any]:
    def done(number: int) -> Any:
        try:
            return work(number)
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(done, range(TIMES)))


class TestAtOnce:
    def test_registrations_get_numbers_of_their_own_and_none_is_lost(self) -> None:
        workspace, run, user = make_workspace(), run_with("model.pt"), make_contributor()
        numbers = at_once(lambda _: register(workspace, "digits", run, "model.pt", user).number)
        assert sorted(numbers) == list(range(1, TIMES + 1))
        assert RegisteredModel.objects.get().last_version == TIMES
        assert all(
            version.files.count() == 1 and version.certificate for version in ModelVersion.objects.all()
        )

    def test_of_tags_set_at_once_none_is_lost(self) -> None:
        version = register(make_workspace(), "digits", run_with("model.pt"), "model.pt", make_contributor())
        at_once(
            lambda number: model_metadata.set_tag(
                ModelVersion.objects.get(pk=version.pk), f"tag {number}", "x"
            )
        )
        version.refresh_from_db()
        assert len(version.tags) == TIMES
