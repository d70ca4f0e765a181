"""Spec -> parts -> what would have been typed -> forms -> parts -> spec."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jobs.sources.examples import examples
from jobs.wizard import steps
from jobs.wizard.assemble import assemble, take_apart
from jobs.wizard.parts import Parts, SourcePart
from tests.wizard.specs import SPECS, golden
from trainhub_launch.errors import SpecError
from trainhub_launch.frameworks import FRAMEWORKS
from trainhub_launch.spec import ExampleSource, RunSpec
from trainhub_launch.spec_reader import read_spec


def through_the_forms(spec: RunSpec) -> RunSpec:
    forms = steps.forms_of(steps.raw_of(take_apart(spec)))
    wrong = {name: form.errors for name, form in forms.items() if not form.is_valid()}
    assert not wrong
    return assemble(steps.parts_of(forms))


class TestRoundTrip:
    @pytest.mark.parametrize("name", SPECS)
    def test_spec_to_parts_and_back_is_the_same_spec(self, name: str) -> None:
        assert assemble(take_apart(golden(name))) == golden(name)

    @pytest.mark.parametrize("name", SPECS)
    def test_spec_to_forms_and_back_is_the_same_spec(self, name: str) -> None:
        assert through_the_forms(golden(name)) == golden(name)

    @pytest.mark.parametrize("example", examples(), ids=lambda example: example.name)
    def test_every_example_survives_the_forms(self, example: object) -> None:
        spec = read_spec(example.spec)  # type: ignore[attr-defined]
        again = through_the_forms(spec)
        # A count of nodes that says what one node means anyway is not typed anywhere.
        assert replace(again, resources=spec.resources) == spec
        assert again.node_count == spec.node_count

    def test_a_node_count_that_repeats_the_distribution_is_dropped(self) -> None:
        spec = read_spec(
            golden("mpi").to_json() | {"resources": {"cluster": "local", "node_count": 2, "gpus_per_node": 4}}
        )
        assert assemble(take_apart(spec)) == replace(spec, resources=replace(spec.resources, node_count=None))


class TestAssemble:
    def test_without_a_source_says_what_to_choose(self) -> None:
        with pytest.raises(SpecError, match="upload your code") as refused:
            assemble(Parts())
        assert refused.value.field == "source"

    def test_refuses_what_the_api_refuses(self) -> None:
        with pytest.raises(SpecError) as refused:
            assemble(Parts(source=SourcePart(ExampleSource("hello"))))
        assert refused.value.field == "script"


def test_every_framework_has_a_card_and_no_two_cards_share_a_name_or_a_field() -> None:
    cards = [card for framework in FRAMEWORKS.values() for card in framework.cards]
    assert all(framework.cards for framework in FRAMEWORKS.values())
    names = [card.name for card in cards] + [field.name for card in cards for field in card.fields]
    assert len(names) == len(set(names))
