from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.launch.builders import SOURCE, mpi, pytorch, tensorflow
from trainhub_launch.errors import SpecError
from trainhub_launch.spec import (
    DataInput,
    EnvironmentRef,
    ExampleSource,
    Limits,
    Resources,
    RunSpec,
    Variable,
)
from trainhub_launch.spec_reader import read_spec

MINIMAL: dict[str, Any] = {"source": {"type": "snapshot", "id": "5f" * 32}, "script": "train.py"}

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=20)
names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,10}", fullmatch=True)
distributions = st.one_of(
    st.none(),
    st.builds(
        pytorch, st.none() | st.integers(1, 64), st.integers(1, 8), st.sampled_from(["nccl", "gloo", "mpi"])
    ),
    st.builds(mpi, st.integers(1, 64), st.integers(1, 8)),
    st.builds(tensorflow, st.integers(1, 64), st.integers(0, 64)),
)
commands = st.one_of(
    st.fixed_dictionaries({"script": st.just("train.py"), "arguments": st.lists(texts).map(tuple)}),
    st.fixed_dictionaries({"command": st.lists(texts, min_size=1).map(tuple)}),
)
specs = st.builds(
    lambda words, **rest: RunSpec(**words, **rest),
    commands,
    source=st.sampled_from([SOURCE, ExampleSource(name="digits")]),
    experiment=st.from_regex(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,20}", fullmatch=True),
    display_name=texts,
    distribution=distributions,
    resources=st.builds(Resources, st.just("local"), st.none(), st.integers(0, 8)),
    environment=st.builds(EnvironmentRef, st.just("TrainHub-PyTorch-2.13"), texts),
    environment_variables=st.dictionaries(
        names, st.builds(Variable, value=texts) | st.just(Variable(secret="key"))
    ),
    priority=st.integers(-10, 10),
    inputs=st.dictionaries(
        st.from_regex(r"[a-z][a-z0-9_]{0,10}", fullmatch=True),
        st.builds(DataInput, st.just("images"), st.sampled_from(["", "birds", "birds/2024"])),
    ),
    limits=st.builds(Limits, st.none() | st.integers(1, 9999), st.integers(0, 3600), st.integers(0, 100)),
    tags=st.dictionaries(texts, texts),
)


def refusal(**changes: Any) -> SpecError:
    with pytest.raises(SpecError) as raised:
        read_spec({**MINIMAL, **changes})
    return raised.value


class TestAllGpus:
    def test_are_kept_as_they_were_written(self) -> None:
        spec = read_spec({**MINIMAL, "resources": {"gpus_per_node": "all"}})
        assert spec.resources == Resources(all_gpus=True)
        assert spec.to_json()["resources"]["gpus_per_node"] == "all"
        assert read_spec(spec.with_gpus(8).to_json()) == spec

    @pytest.mark.parametrize("text", ["ALL", "8", "", "every"])
    def test_no_other_text_is_read(self, text: str) -> None:
        error = refusal(resources={"gpus_per_node": text})
        assert error.field == "resources.gpus_per_node"
        assert 'or "all" for all GPUs of each node' in error.message


class TestRoundTrip:
    @given(specs)
    def test_a_spec_comes_back_from_its_json_unchanged(self, spec: RunSpec) -> None:
        assert read_spec(spec.to_json()) == spec

    def test_the_least_that_must_be_said_is_source_and_script(self) -> None:
        spec = read_spec(MINIMAL)
        assert (spec.experiment, spec.distribution, spec.node_count, spec.resources.gpus_per_node) == (
            "default",
            None,
            1,
            0,
        )

    def test_defaults_are_those_of_azure(self) -> None:
        made = read_spec({**MINIMAL, "distribution": {"type": "pytorch"}}).distribution
        assert made == pytorch(None, 1, "nccl")
        assert read_spec({**MINIMAL, "distribution": {"type": "mpi"}}).distribution == mpi(1, 1)
        assert read_spec({**MINIMAL, "distribution": {"type": "tensorflow"}}).distribution == tensorflow(1, 0)

    def test_numbers_among_arguments_become_words(self) -> None:
        spec = read_spec({**MINIMAL, "arguments": ["--epochs", 50, "--lr", 0.1]})
        assert spec.arguments == ("--epochs", "50", "--lr", "0.1")


class TestRefusals:
    @pytest.mark.parametrize(
        ("changes", "field"),
        [
            ({"script": ""}, "script"),
            ({"script": 3}, "script"),
            ({"script": "a\x00b"}, "script"),
            ({"command": ["python"]}, "command"),
            ({"command": "python train.py", "script": ""}, "command"),
            ({"arguments": ["a", ["b"]]}, "arguments[1]"),
            ({"arguments": [True]}, "arguments[0]"),
            ({"arguments": ["\ud800"]}, "arguments[0]"),
            ({"arguments": ["x" * 200_000]}, "arguments[0]"),
            ({"source": {}}, "source.type"),
            ({"source": {"type": "svn"}}, "source.type"),
            ({"source": {"type": "git"}}, "source.url"),
            ({"source": {"type": "snapshot"}}, "source.id"),
            ({"source": None}, "source"),
            ({"experiment": "../x"}, "experiment"),
            ({"experiment": "a" * 129}, "experiment"),
            ({"display_name": "a" * 201}, "display_name"),
            ({"distribution": {"type": "ray"}}, "distribution.type"),
            ({"distribution": {"type": "single"}}, "distribution.type"),
            ({"distribution": {"type": "pytorch", "process_count": 0}}, "distribution.process_count"),
            ({"distribution": {"type": "pytorch", "process_count": "4"}}, "distribution.process_count"),
            (
                {"distribution": {"type": "pytorch", "communication_backend": "ucc"}},
                "distribution.communication_backend",
            ),
            ({"distribution": {"type": "mpi", "process_count": 4}}, "distribution.process_count"),
            (
                {"distribution": {"type": "mpi", "process_count_per_node": 4096, "node_count": 1024}},
                "distribution.process_count_per_node",
            ),
            (
                {"distribution": {"type": "tensorflow", "worker_count": 400, "parameter_server_count": 400}},
                "distribution.worker_count",
            ),
            (
                {"distribution": {"type": "pytorch", "node_count": 2}, "resources": {"node_count": 3}},
                "resources.node_count",
            ),
            ({"resources": {"node_count": 2}}, "resources.node_count"),
            ({"resources": {"gpus_per_node": -1}}, "resources.gpus_per_node"),
            ({"resources": {"gpus_per_node": True}}, "resources.gpus_per_node"),
            ({"environment_variables": ["A=1"]}, "environment_variables"),
            ({"environment_variables": {"A-B": "x"}}, "environment_variables.A-B"),
            ({"environment_variables": {"A": None}}, "environment_variables.A"),
            ({"environment_variables": {"A": {"secret": ""}}}, "environment_variables.A.secret"),
            ({"environment_variables": {"A": "\x00"}}, "environment_variables.A"),
            ({"limits": {"retries": 1000}}, "limits.retries"),
            ({"priority": 11}, "priority"),
            ({"priority": -11}, "priority"),
            ({"priority": "high"}, "priority"),
            ({"tags": {"a": 1}}, "tags"),
            ({"node_count": 2}, "node_count"),
            ({"version": 99}, "version"),
        ],
    )
    def test_name_the_field(self, changes: dict[str, Any], field: str) -> None:
        assert refusal(**changes).field == field

    def test_a_priority_out_of_range_is_answered_with_the_range(self) -> None:
        assert refusal(priority=11).message == "must be between -10 and 10, not 11"

    def test_an_unknown_field_is_answered_with_those_there_are(self) -> None:
        assert "process_count_per_node" in refusal(distribution={"type": "mpi", "processes": 4}).message

    def test_a_spec_that_is_no_object_is_refused(self) -> None:
        with pytest.raises(SpecError):
            read_spec(["train.py"])


class TestNodeCount:
    @pytest.mark.parametrize(
        ("distribution", "resources", "nodes"),
        [
            (None, Resources(), 1),
            (pytorch(8, 2), Resources(), 2),
            (mpi(4, 3), Resources(node_count=3), 3),
            (tensorflow(4), Resources(), 4),
            (tensorflow(4), Resources(node_count=1), 1),
        ],
    )
    def test_is_what_the_distribution_says(self, distribution: Any, resources: Resources, nodes: int) -> None:
        assert (
            RunSpec(source=SOURCE, script="t.py", distribution=distribution, resources=resources).node_count
            == nodes
        )
