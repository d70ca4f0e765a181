from __future__ import annotations

from importlib import import_module

import pytest
from django.apps import apps

from jobs import tags
from jobs.models import RunTag
from tests.jobs.builders import queued
from trainhub_launch.errors import SpecError
from workspaces.access import Principal


def told(run_id: str) -> dict[str, str]:
    return dict(RunTag.objects.filter(run=run_id).values_list("key", "value"))


class TestTheTagsOfASpec:
    def test_are_rows_once_it_is_submitted(self, who: Principal) -> None:
        run = queued(who, tags={"team": "vision", "long": "x" * 300})
        assert told(run.pk) == {"team": "vision", "long": "x" * 300}
        assert RunTag.objects.get(run=run, key="long").short == "x" * 200

    def test_became_rows_for_runs_that_were_there_before(self, who: Principal) -> None:
        run, without = queued(who, tags={"team": "vision"}), queued(who)
        RunTag.objects.all().delete()
        import_module("jobs.migrations.0007_spec_tags").to_rows(apps, None)
        assert (told(run.pk), told(without.pk)) == ({"team": "vision"}, {})


class TestTags:
    def test_are_replaced_and_dropped(self, who: Principal) -> None:
        run = queued(who, tags={"seed": "1"})
        tags.set_tags(run, {"seed": "2", "team": "vision"})
        assert told(run.pk) == {"seed": "2", "team": "vision"}
        assert (tags.delete_tags(run, ["seed"]), tags.delete_tags(run, ["seed"])) == (1, 0)

    def test_are_not_endlessly_many(self, who: Principal, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(tags, "MAX_TAGS", 2)
        run = queued(who, tags={"a": "1"})
        tags.set_tags(run, {"a": "2", "b": "1"})
        with pytest.raises(SpecError, match="a run may have 2 tags"):
            tags.set_tags(run, {"c": "1"})

    def test_with_keys_that_no_column_holds_are_refused_before_anything_is_made(self, who: Principal) -> None:
        with pytest.raises(SpecError, match="250 characters"):
            queued(who, tags={"k" * 251: "1"})
        assert not RunTag.objects.exists()
