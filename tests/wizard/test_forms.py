"""Each form: what it accepts, and how it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.wizard.distribution_form import DistributionForm
from jobs.wizard.environment_form import EnvironmentForm
from jobs.wizard.forms import StepForm, below
from jobs.wizard.parts import ResourcesPart
from jobs.wizard.resources_form import ResourcesForm
from jobs.wizard.source_form import SourceForm
from tests.wizard.builders import typed
from trainhub_launch.frameworks.mpi.configuration import MpiConfiguration
from trainhub_launch.frameworks.pytorch.configuration import PyTorchConfiguration


def errors(form: StepForm[Any]) -> dict[str, list[str]]:
    return {name: [str(error) for error in found] for name, found in form.errors.items()}


class TestSource:
    def test_an_empty_script_is_refused_by_name(self) -> None:
        assert list(errors(SourceForm(typed("source", source="example:hello")))) == ["script"]

    def test_an_open_quotation_mark_names_the_field_and_the_remedy(self) -> None:
        found = errors(
            SourceForm(typed("source", source="example:hello", script="a.py", arguments="--name 'x"))
        )
        assert "close it" in found["arguments"][0]
        assert found["arguments"][0].startswith("Arguments")

    def test_only_the_chosen_way_is_checked_and_the_other_stays_typed(self) -> None:
        form = SourceForm(
            typed("source", source="example:hello", runs="command", command="bash x.sh", arguments="'open")
        )
        assert form.is_valid()
        assert form.part().command == ("bash", "x.sh")
        assert form.typed["arguments"] == ["'open"]


class TestDistribution:
    def test_hidden_fields_are_not_checked(self) -> None:
        form = DistributionForm(
            typed("distribution", kind="mpi", mpi_process_count="4", pp_process_count="many")
        )
        assert form.is_valid()
        assert form.part().distribution == MpiConfiguration(4, 1)

    @pytest.mark.parametrize("text", ["0", "-1", "5000", "two", "1.5", ""])
    def test_a_count_out_of_range_says_the_range(self, text: str) -> None:
        found = errors(DistributionForm(typed("distribution", kind="pytorch_process", pp_process_count=text)))
        assert found == {"pp_process_count": ["Total processes: must be a whole number between 1 and 4096."]}

    def test_per_node_leaves_the_process_count_out(self) -> None:
        form = DistributionForm(typed("distribution", kind="pytorch_node", pn_node_count="2"))
        assert form.is_valid()
        assert form.part().distribution == PyTorchConfiguration("nccl", None, 2)

    def test_an_unknown_kind_is_refused(self) -> None:
        assert list(errors(DistributionForm(typed("distribution", kind="slurm")))) == ["kind"]


class TestResources:
    @pytest.mark.parametrize("number", ["", "99", "2"])
    def test_all_gpus_take_the_place_of_whatever_number_is_typed(self, number: str) -> None:
        form = ResourcesForm(typed("resources", all_gpus="on", gpus_per_node=number))
        assert form.is_valid(), form.errors
        assert (form.part().all_gpus, form.part().gpus_per_node) == (True, 0)

    @pytest.mark.parametrize("text", ["soon", "0", "400d"])
    def test_a_bad_time_limit_is_refused_under_its_own_field(self, text: str) -> None:
        found = errors(ResourcesForm(typed("resources", timeout=text)))
        assert list(found) == ["timeout"]
        assert found["timeout"][0].startswith("Time limit:")

    @pytest.mark.parametrize(("name", "label"), [("memory", "Memory per node"), ("disk", "Disk per node")])
    def test_what_is_no_size_is_refused_under_its_own_field(self, name: str, label: str) -> None:
        found = errors(ResourcesForm(typed("resources", **{name: "much"})))
        assert list(found) == [name]
        assert found[name][0].startswith(f"{label}: write a size, like ")

    def test_limits_are_read_back_as_they_were(self) -> None:
        part = ResourcesPart(memory=2**36, cpus=2.5, disk=100 * 2**30 + 1)
        assert ResourcesForm.raw(part)["disk"] == [str(100 * 2**30 + 1)]
        form = ResourcesForm(ResourcesForm.raw(part))
        assert form.is_valid()
        assert form.part() == part


class TestEnvironment:
    @pytest.mark.parametrize(
        ("names", "values", "says"),
        [
            (["2X"], ["1"], "'2X' is not a name"),
            (["A", "A"], ["1", "2"], "A is given twice"),
            ([""], ["lost"], "the name before 'lost' is not a name"),
            (["A"], ["\x00"], "NUL"),
        ],
    )
    def test_a_wrong_variable_is_named(self, names: list[str], values: list[str], says: str) -> None:
        form = EnvironmentForm(typed("environment", variable_name=names, variable_value=values))
        assert says in errors(form)["variables"][0]

    def test_blank_rows_are_no_variables(self) -> None:
        rows = {"variable_name": ["A", ""], "variable_value": ["", ""], "tag_name": [""], "tag_value": [""]}
        form = EnvironmentForm(typed("environment", **rows))
        assert form.is_valid()
        assert list(form.part().variables) == ["A"]

    def test_a_tag_needs_a_name(self) -> None:
        assert (
            "value 'x'"
            in errors(EnvironmentForm(typed("environment", tag_name=[""], tag_value=["x"])))["tags"][0]
        )

    def test_a_tag_stands_once(self) -> None:
        form = EnvironmentForm(typed("environment", tag_name=["team", "team"], tag_value=["a", "b"]))
        assert errors(form)["tags"] == ["Tags: team is given twice; keep one of the two."]

    def test_an_experiment_has_an_alphabet(self) -> None:
        assert "letters" in errors(EnvironmentForm(typed("environment", experiment="a/b")))["experiment"][0]


class TestBelow:
    @pytest.mark.parametrize(
        ("path", "field"),
        [
            ("limits", "a"),
            ("limits.grace_s", "b"),
            ("limits.other", "a"),
            ("limits[2]", "a"),
            ("limitless", None),
            ("x", None),
        ],
    )
    def test_the_longest_prefix_wins(self, path: str, field: str | None) -> None:
        assert below(path, {"limits": "a", "limits.grace_s": "b"}) == field
