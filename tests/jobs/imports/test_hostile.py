"""Texts that are no file of a launcher, or one that was made to do harm, are refused in a sentence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.exports.spec_comment import MARK
from jobs.imports import READERS, import_spec
from jobs.imports.yaml_document import MAX_DEPTH, MAX_TEXT_BYTES, MAX_VALUES
from tests.fuzz.limits import answer_of
from tests.jobs.imports.test_foreign import AZUREML, DDP_ON_SLURM, DSTACK, SKYPILOT
from trainhub_launch.errors import SpecError

YAML = ("skypilot", "dstack", "azureml")
FILES = {"sbatch": DDP_ON_SLURM, "skypilot": SKYPILOT, "dstack": DSTACK, "azureml": AZUREML}
PIECES = st.sampled_from(
    [
        "\x00",
        "\t",
        "'",
        '"',
        "$(",
        "`",
        "{",
        "}",
        "[",
        "&a ",
        "*a",
        "- ",
        ": ",
        "|",
        "\\",
        "\n",
        "${{",
        "€",
        "9" * 400,
    ]
)


def refusal(source: str, text: str) -> SpecError:
    with pytest.raises(SpecError) as raised:
        import_spec(source, text)
    return raised.value


@pytest.mark.parametrize("source", READERS)
class TestAnyFormat:
    def test_too_long(self, source: str) -> None:
        error = refusal(source, "#" * (MAX_TEXT_BYTES + 1))
        assert (error.field, "256 KiB" in error.message) == ("text", True)

    @pytest.mark.parametrize("text", ["", " \n", "a\x00b"])
    def test_nothing_to_read(self, source: str, text: str) -> None:
        assert refusal(source, text).field == "text"

    def test_a_comment_with_a_spec_that_is_nested_too_deeply(self, source: str) -> None:
        text = f"{MARK}{'[' * 50_000}\n{FILES[source]}"
        assert import_spec(source, text).notes

    @given(st.text(max_size=300))
    def test_any_text_is_read_or_refused(self, source: str, text: str) -> None:
        try:
            import_spec(source, text)
        except SpecError as error:
            assert error.message  # noqa: PT017 - both may happen

    @given(st.data())
    def test_a_damaged_file_is_read_or_refused(self, source: str, data: st.DataObject) -> None:
        text = FILES[source]
        for _ in range(data.draw(st.integers(1, 4))):
            at = data.draw(st.integers(0, len(text)))
            text = text[:at] + data.draw(PIECES) + text[at + data.draw(st.integers(0, 9)) :]
        try:
            import_spec(source, text)
        except SpecError as error:
            assert error.message  # noqa: PT017 - both may happen


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("sbatch", "python " + "'a'\"b\"" * 40_000),
        ("sbatch", 'python "' + "\\\\$A" * 60_000),
        ("sbatch", "".join(f"export A{number}=1\nexport A{number}\n" for number in range(9000))),
        ("sbatch", "start_rank() {\n" * 17_000),
        ("sbatch", "#!/bin/bash\n#SBATCH " + "-a " * 80_000),
        ("sbatch", "A=1 " * 60_000 + "x\n"),
        ("sbatch", "a\\\n" * 60_000),
        ("skypilot", "run: x\nenvs:\n" + "".join(f"  A{number}: 1\n" for number in range(20_000))),
        ("dstack", "type: task\nzz: [" + "1," * 120_000 + "]"),
    ],
    ids=lambda item: item[:20],
)
def test_a_long_text_is_read_or_refused_in_bounded_time(source: str, text: str) -> None:
    answer_of(lambda: import_spec(source, text), SpecError)


@pytest.mark.parametrize("source", YAML)
class TestYaml:
    def test_aliases_are_refused_with_their_line(self, source: str) -> None:
        bomb = "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n"
        assert refusal(source, bomb).message.startswith("line 2: *a is not possible here")

    def test_deep_nesting_is_refused(self, source: str) -> None:
        assert f"more than {MAX_DEPTH} levels" in refusal(source, f"a: {'[' * 5000}").message

    def test_too_many_values_are_refused(self, source: str) -> None:
        text = "a:\n" + "- 1\n" * MAX_VALUES
        assert f"more than {MAX_VALUES} values" in refusal(source, text).message

    def test_tags_are_refused(self, source: str) -> None:
        assert "the tag" in refusal(source, "a: !!python/object:os.system x\n").message

    def test_a_name_that_stands_there_twice(self, source: str) -> None:
        assert "twice" in refusal(source, "name: a\nname: b\n").message

    def test_what_is_no_yaml_is_refused_with_its_line(self, source: str) -> None:
        assert refusal(source, "a: b\nc: [\n").message.startswith("line ")

    def test_what_is_no_mapping(self, source: str) -> None:
        assert "must be a mapping" in refusal(source, "- a\n- b\n").message
