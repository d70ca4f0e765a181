from __future__ import annotations

import pytest

from registry.aliases import delete_alias, set_alias
from registry.errors import RegistryError
from registry.models import RegisteredModel
from registry.registration import register
from tests.people import make_contributor, make_workspace
from tests.registry.builders import run_with

pytestmark = pytest.mark.django_db


def model_with(versions: int) -> RegisteredModel:
    run = run_with("model.pt")
    for _ in range(versions):
        version = register(make_workspace(), "digits", run, "model.pt", make_contributor())
    return RegisteredModel.objects.get(pk=version.model_id)


def aliases(model: RegisteredModel) -> dict[str, int]:
    return {alias.name: alias.version.number for alias in model.aliases.all()}


class TestSetAlias:
    def test_names_one_version(self) -> None:
        model = model_with(2)
        set_alias(model, "production", 1, make_contributor())
        assert aliases(model) == {"production": 1}

    def test_moves_to_another_version(self) -> None:
        model = model_with(2)
        set_alias(model, "production", 1, make_contributor())
        set_alias(model, "production", 2, make_contributor())
        assert aliases(model) == {"production": 2}

    def test_a_version_may_have_several(self) -> None:
        model = model_with(1)
        set_alias(model, "production", 1, make_contributor())
        set_alias(model, "champion", 1, make_contributor())
        assert aliases(model) == {"production": 1, "champion": 1}

    @pytest.mark.parametrize("alias", ["", "7", "v7", "V12", "latest", "a b", "a/b", "ü", "-x", "x" * 65])
    def test_a_word_that_reads_like_a_version_or_breaks_an_address_is_refused(self, alias: str) -> None:
        model = model_with(1)
        with pytest.raises(RegistryError) as caught:
            set_alias(model, alias, 1, make_contributor())
        assert caught.value.field == "alias"

    def test_a_version_that_is_not_there_is_refused(self) -> None:
        model = model_with(2)
        with pytest.raises(RegistryError, match="its latest is 2") as caught:
            set_alias(model, "production", 3, make_contributor())
        assert caught.value.field == "version"


class TestDeleteAlias:
    def test_leaves_the_version(self) -> None:
        model = model_with(1)
        set_alias(model, "production", 1, make_contributor())
        assert delete_alias(model, "production", make_contributor())
        assert aliases(model) == {}
        assert model.versions.count() == 1

    def test_says_when_there_was_none(self) -> None:
        assert not delete_alias(model_with(1), "production", make_contributor())
