"""The table of frameworks, with the made-up one and without: what each of its items must be for the rest to
work."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from jobs.wizard import steps
from jobs.wizard.assemble import assemble, take_apart
from tests.frameworks import ring
from tests.frameworks.registration import temporary_framework
from tests.frameworks.ring.configuration import RingConfiguration
from tests.launch.builders import make_spec
from tests.launch.findings.findings_of import found, script
from tests.test_architecture import PACKAGES, PROJECT, modules
from trainhub_launch.distribution import Distribution
from trainhub_launch.errors import SpecError
from trainhub_launch.fields import Fields
from trainhub_launch.frameworks import FRAMEWORKS, demand, framework_of, stored_summary
from trainhub_launch.frameworks.framework import Framework
from trainhub_launch.spec import Resources, RunSpec
from trainhub_launch.spec_reader import read_spec

ALL = [*FRAMEWORKS.values(), ring.FRAMEWORK]
CONFIGURED = [framework for framework in ALL if framework.configuration is not None]
NAMES = [*FRAMEWORKS, *(framework.label for framework in FRAMEWORKS.values())]
FOLDERS = tuple(f"trainhub_launch.frameworks.{name}" for name in FRAMEWORKS)
SOURCE = {"type": "snapshot", "id": "5f" * 32}


def default_configuration(framework: Framework) -> Distribution:
    assert framework.configuration is not None
    return framework.configuration.read(Fields({}))


@pytest.mark.parametrize("framework", ALL, ids=lambda framework: framework.name)
class TestEveryFramework:
    def test_tells_a_person_what_it_is(self, framework: Framework) -> None:
        assert framework.label
        assert framework.sentence.endswith(".")

    def test_has_cards_named_after_it_whose_fields_are_its_own(self, framework: Framework) -> None:
        own = (
            set()
            if framework.configuration is None
            else set(default_configuration(framework).to_json()) - {"type"}
        )
        assert framework.cards
        for card in framework.cards:
            assert card.name.startswith(framework.name)
            paths = {field.path for field in card.fields} - {"resources.node_count"}
            assert paths <= {f"distribution.{name}" for name in own}


@pytest.mark.parametrize("framework", CONFIGURED, ids=lambda framework: framework.name)
class TestEveryConfiguration:
    def test_is_described_by_its_schema(self, framework: Framework) -> None:
        assert framework.configuration is not None
        properties = framework.configuration.json_schema["properties"]
        written = default_configuration(framework).to_json()
        assert set(properties) == set(written)
        assert properties["type"]["enum"] == [framework.name] == [written["type"]]

    def test_says_itself_in_a_few_characters(self, framework: Framework) -> None:
        assert framework.configuration is not None
        assert 0 < len(framework.configuration.summary(default_configuration(framework))) <= 12

    def test_refuses_the_configuration_of_another_framework(self, framework: Framework) -> None:
        other = next(item for item in CONFIGURED if item.name != framework.name)
        spec = make_spec(default_configuration(other))
        with pytest.raises(SpecError, match=f"must be '{framework.name}'"):
            framework.demand(spec)


def ring_spec(**changes: object) -> RunSpec:
    distribution = {"type": "ring", "member_count": 3, "direction": "backward"}
    return read_spec({"source": SOURCE, "script": "train.py", "distribution": distribution, **changes})


class TestMadeUpFramework:
    @pytest.fixture(autouse=True)
    def _ring_in_the_table(self) -> Iterator[None]:
        before = dict(FRAMEWORKS)
        with temporary_framework(ring.FRAMEWORK):
            yield
        assert before == FRAMEWORKS

    def test_is_read_and_written(self) -> None:
        spec = ring_spec()
        assert spec.distribution == RingConfiguration(3, "backward")
        assert read_spec(spec.to_json()) == spec
        assert framework_of(spec) is ring.FRAMEWORK

    def test_says_what_it_demands(self) -> None:
        assert (demand(ring_spec()).nodes, demand(ring_spec()).slots) == (1, 3)
        assert demand(ring_spec(resources={"gpus_per_node": 2})).gpus == 2

    def test_is_summed_up_in_lists(self) -> None:
        assert stored_summary(ring_spec().to_json()) == "Ring ×3"

    def test_is_named_where_another_type_is_refused(self) -> None:
        with pytest.raises(
            SpecError, match=r"'circle' is not known; use 'pytorch', 'mpi', .* or 'ring', or leave it out"
        ):
            ring_spec(distribution={"type": "circle"})
        with pytest.raises(SpecError, match=r"needs a distribution \(pytorch, mpi, .* or ring\)"):
            ring_spec(distribution=None, resources={"node_count": 2})

    def test_judges_its_own_runs(self) -> None:
        assert [finding.field for finding in found(script("", RingConfiguration(4, node_count=2)))] == []
        (finding,) = found(script("", RingConfiguration(1)))
        assert (finding.level, finding.field) == ("warning", "distribution.member_count")
        too_few = make_spec(RingConfiguration(3), resources=Resources(gpus_per_node=2))
        assert [item.level for item in found(too_few) if item.field == "distribution.member_count"] == [
            "warning"
        ]

    def test_is_suggested_to_a_run_that_refers_to_its_variables(self) -> None:
        (finding,) = found(script("--rank $RING_RANK"))
        assert finding.message == "$RING_RANK will not exist; choose the Ring distribution, which sets it"
        assert found(script("--rank $RING_RANK", RingConfiguration(2))) == []

    def test_survives_the_forms_of_the_wizard(self) -> None:
        forms = steps.forms_of(steps.raw_of(take_apart(ring_spec())))
        assert {name: form.errors for name, form in forms.items() if not form.is_valid()} == {}
        assert assemble(steps.parts_of(forms)) == ring_spec()


def knowledge_of_frameworks(tree: ast.AST) -> Iterator[str]:
    """Imports from the folder of a framework, and comparisons with the name of one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(FOLDERS):
            yield f"{node.lineno} imports {node.module}"
        elif isinstance(node, ast.Compare | ast.MatchValue):
            words = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)]
            yield from (f"{node.lineno} compares with {word!r}" for word in words if word in NAMES)


# The formats of other launchers have words of their own for some frameworks. Those that they have none for
# are written from the plan.
FOREIGN = {PROJECT / "jobs" / "exports", PROJECT / "jobs" / "imports"}


def test_nothing_else_tells_frameworks_apart() -> None:
    table = PROJECT / "trainhub_launch" / "frameworks"
    others = [path for path in modules(*PACKAGES) if not {table, *FOREIGN} & set(path.parents)]
    assert len(others) > 100
    wrong = [
        f"{path.relative_to(PROJECT)}:{place}"
        for path in others
        for place in knowledge_of_frameworks(ast.parse(path.read_text()))
    ]
    assert not wrong, "\n".join(wrong)
    seen = list(knowledge_of_frameworks(ast.parse("if spec.distribution.type == 'mpi':\n    pass")))
    assert seen == ["1 compares with 'mpi'"]


def test_a_stored_run_of_a_framework_that_is_gone_shows_its_name() -> None:
    with temporary_framework(ring.FRAMEWORK):
        stored = ring_spec().to_json()
    assert stored_summary(stored) == "ring"
    with pytest.raises(SpecError, match=r"'ring' is not known; use 'pytorch', .*, or leave it out"):
        read_spec(stored)
