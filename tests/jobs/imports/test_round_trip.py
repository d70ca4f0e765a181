"""What TrainHub exports comes back as the same spec, and what people change in it by hand counts."""

from __future__ import annotations

import pytest
from hypothesis import given

from jobs.exports import export_spec
from jobs.exports.note import Outcome
from jobs.exports.spec_comment import MARK
from jobs.imports import READERS, SpecImport, import_spec
from jobs.imports.hand_edits import MAX_CHANGED_LINES
from tests.jobs.exports.specs import GOLDEN_SPECS, all_specs
from tests.jobs.exports.test_exports import export_or_refusal
from tests.launch.test_spec import specs
from trainhub_launch.errors import SpecError
from trainhub_launch.frameworks.pytorch.configuration import PyTorchConfiguration
from trainhub_launch.spec import RunSpec, Variable
from trainhub_launch.spec_reader import read_spec


def exported(spec: RunSpec, to: str) -> str:
    (text,) = export_spec(spec, to).files.values()
    return text


def edited(name: str, to: str, *changes: tuple[str, str]) -> SpecImport:
    """The import of an export of a golden spec in which texts are replaced."""
    text = exported(GOLDEN_SPECS[name], to)
    comment, rest = text.split(MARK)[0], text.split(MARK)[1]
    line, _, rest = rest.partition("\n")
    for old, new in changes:
        assert old in comment + rest, f"{old} is not in\n{text}"
        comment, rest = comment.replace(old, new), rest.replace(old, new)
    return import_spec(to, f"{comment}{MARK}{line}\n{rest}")


def changes(result: SpecImport) -> set[str]:
    return {note.field for note in result.notes if note.outcome == Outcome.CHANGED}


class TestUnchanged:
    @pytest.mark.parametrize("to", READERS)
    @given(specs)
    def test_any_spec_comes_back(self, to: str, spec: RunSpec) -> None:
        if export_or_refusal(spec, to) is not None:
            assert import_spec(to, exported(spec, to)).spec == spec

    @pytest.mark.parametrize("to", READERS)
    @pytest.mark.parametrize(("name", "spec"), list(all_specs()))
    def test_all_specs_of_the_tests_come_back(self, name: str, spec: RunSpec, to: str) -> None:
        result = import_spec(to, exported(spec, to))
        assert result.spec == spec, name
        assert [note.outcome for note in result.notes] == [Outcome.SAME]

    @pytest.mark.parametrize("to", READERS)
    @given(specs)
    def test_without_its_comment_it_is_read_like_any_other_file(self, to: str, spec: RunSpec) -> None:
        if export_or_refusal(spec, to) is None:
            return
        lines = [line for line in exported(spec, to).split("\n") if not line.startswith(MARK)]
        try:
            result = import_spec(to, "\n".join(lines))
        except SpecError as error:
            # Such as more processes than a run may have.
            if error.field.split(".")[0] in ("distribution", "resources", "display_name"):
                return
            # A shell's `. FILE` prepares the environment, so that nothing is left to run.
            if error.field == "script" and spec.command[:1] == (".",):
                return
            raise
        assert read_spec({**result.spec.to_json(), "source": {"type": "example", "name": "x"}})

    def test_line_ends_of_windows_change_nothing(self) -> None:
        spec = GOLDEN_SPECS["full"]
        assert import_spec("sbatch", exported(spec, "sbatch").replace("\n", "\r\n")).spec == spec


class TestEditedByHand:
    def test_options_of_slurm_count(self) -> None:
        result = edited(
            "full", "sbatch", ("--time=01:30:00", "--time=2-00:00:00"), ("--mem=65536M", "--mem=128G")
        )
        assert result.spec.limits.timeout_s == 2 * 86400
        assert result.spec.resources.memory == 128 * 2**30
        assert changes(result) == {"limits.timeout_s", "resources.memory"}
        # All else is as it was, also what Slurm does not have.
        assert result.spec.tags == GOLDEN_SPECS["full"].tags
        assert result.spec.inputs == GOLDEN_SPECS["full"].inputs

    def test_an_option_that_is_removed_is_gone(self) -> None:
        result = edited(
            "full", "sbatch", ("#SBATCH --time=01:30:00\n", ""), ("#SBATCH --signal=TERM@60\n", "")
        )
        assert result.spec.limits.timeout_s is None
        assert {"limits.timeout_s", "limits.grace_s"} <= changes(result)

    @pytest.mark.parametrize(
        ("to", "old", "new"),
        [
            ("sbatch", "--nodes=2", "--nodes=3"),
            ("skypilot", "num_nodes: 2", "num_nodes: 3"),
            ("dstack", "nodes: 2", "nodes: 3"),
            ("azureml", "instance_count: 2", "instance_count: 3"),
        ],
    )
    def test_the_number_of_nodes_changes_all_processes(self, to: str, old: str, new: str) -> None:
        result = edited("pytorch_per_process", to, (old, new))
        assert result.spec.distribution is not None
        assert result.spec.distribution.to_json() == {
            "type": "pytorch",
            "communication_backend": "nccl",
            "process_count": 12,
            "node_count": 3,
        }
        assert "distribution" in changes(result)

    @pytest.mark.parametrize("to", READERS)
    def test_arguments_in_the_readable_part_count(self, to: str) -> None:
        result = edited("full", to, ("--epochs 20", "--epochs 30 --name 'a b'"))
        assert result.spec.script == "train.py"
        assert result.spec.arguments[:4] == ("--epochs", "30", "--name", "a b")
        assert result.spec.arguments[4:] == GOLDEN_SPECS["full"].arguments[2:]
        assert "script" in changes(result)

    def test_variables_count(self) -> None:
        result = edited("full", "sbatch", ("export NUMBER=1e3", "export NUMBER=2e3\nexport MORE='x y'"))
        assert result.spec.environment_variables["NUMBER"] == Variable("2e3")
        assert result.spec.environment_variables["MORE"] == Variable("x y")
        assert result.spec.environment_variables["WANDB_API_KEY"] == Variable(secret="wandb")

    def test_lines_of_our_own_part_are_a_note_with_their_line(self) -> None:
        result = edited("pytorch_per_process", "sbatch", ("srun --kill", "sleep 5\nsrun --kill"))
        assert result.spec == GOLDEN_SPECS["pytorch_per_process"]
        (note,) = (note for note in result.notes if note.outcome == Outcome.NONE)
        assert "'sleep 5'" in note.message
        text = exported(GOLDEN_SPECS["pytorch_per_process"], "sbatch").split("\n")
        assert note.line == 1 + next(number for number, line in enumerate(text) if line.startswith("srun"))

    def test_an_input_that_is_removed_is_gone(self) -> None:
        text = exported(GOLDEN_SPECS["full"], "azureml")
        lines = text.split("\n")
        at = lines.index("  labels:")
        result = import_spec("azureml", "\n".join([*lines[:at], *lines[at + 3 :]]))
        assert list(result.spec.inputs) == ["birds"]

    def test_too_many_changed_lines_are_not_compared(self) -> None:
        text = exported(GOLDEN_SPECS["full"], "sbatch") + "sleep 1\n" * (MAX_CHANGED_LINES + 1)
        result = import_spec("sbatch", text)
        assert result.spec == GOLDEN_SPECS["full"]
        assert any("too many to compare" in note.message for note in result.notes)

    def test_a_comment_that_was_damaged_leaves_the_readable_part(self) -> None:
        text = exported(GOLDEN_SPECS["full"], "sbatch").replace(f"{MARK}{{", f"{MARK}[")
        result = import_spec("sbatch", text)
        assert result.spec.limits.timeout_s == 5400
        assert ("trainhub-spec", Outcome.NONE) in {(note.field, note.outcome) for note in result.notes}
        assert result.spec.script == "train.py"
        assert result.spec.arguments == GOLDEN_SPECS["full"].arguments
        assert result.spec.distribution == PyTorchConfiguration(process_count=8, node_count=2)

    def test_the_comment_of_another_run_does_not_count_where_the_file_says_otherwise(self) -> None:
        ours, other = GOLDEN_SPECS["full"], GOLDEN_SPECS["mpi"]
        line = next(line for line in exported(other, "skypilot").split("\n") if line.startswith(MARK))
        text = "\n".join(
            line if old.startswith(MARK) else old for old in exported(ours, "skypilot").split("\n")
        )
        result = import_spec("skypilot", text)
        assert result.spec.resources.cpus == 32
        assert result.spec.environment_variables["NUMBER"] == Variable("1e3")
