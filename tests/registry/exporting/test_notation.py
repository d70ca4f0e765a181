from __future__ import annotations

import pytest

from registry.errors import RegistryError
from registry.exports.notation import Input, check_axes, read_dynamic, read_inputs


class TestInputs:
    @pytest.mark.parametrize(
        ("line", "read"),
        [
            ("1x64 float32", Input("", (1, 64), "float32")),
            ("images: 1x1x8x8", Input("images", (1, 1, 8, 8), "float32")),
            ("ids : 1 × 16 long 0..999", Input("ids", (1, 16), "int64", 0, 999)),
            ("x: 3 double -1.5..2.5", Input("x", (3,), "float64", -1.5, 2.5)),
            ("scale: scalar half", Input("scale", (), "float16")),
            ("mask: 2x4 bool", Input("mask", (2, 4), "bool")),
            ("pixels: 2x4 uint8 0..255", Input("pixels", (2, 4), "uint8", 0, 255)),
        ],
    )
    def test_is_read_as_it_is_written(self, line: str, read: Input) -> None:
        assert read_inputs([line]) == (read,)

    @pytest.mark.parametrize(
        ("line", "why"),
        [
            ("one by one", "write SHAPE TYPE"),
            ("1x64 complex64", "'complex64' is not a type"),
            ("1x0 float32", "an axis of size 0"),
            ("9999x9999x9999", "too many values"),
            ("1x1x1x1x1x1x1x1x1", "over 8 axes"),
            ("4 int64 9..0", "the wrong way round"),
            ("4 int8 0..999", "do not fit the type int8"),
            ("4 uint8 0..256", "do not fit the type uint8"),
            ("x" * 65 + ": 4", "too long a name"),
            ("١x2 float32", "write SHAPE TYPE"),
        ],
    )
    def test_what_cannot_be_read_is_refused_naming_the_field(self, line: str, why: str) -> None:
        with pytest.raises(RegistryError, match=why) as refused:
            read_inputs([line])
        assert refused.value.field == "inputs"

    def test_there_is_an_end_to_them(self) -> None:
        with pytest.raises(RegistryError, match="has 17 inputs, and at most 16"):
            read_inputs(["1"] * 17)

    def test_names_are_given_once(self) -> None:
        with pytest.raises(RegistryError, match="the same name"):
            read_inputs(["x: 1", "x: 2"])

    def test_empty_lines_are_nothing(self) -> None:
        assert read_inputs(["", "  "]) == ()


class TestDynamicAxes:
    @pytest.mark.parametrize(
        ("line", "read"),
        [
            ("0=batch", {"": {0: "batch"}}),
            ("0", {"": {0: "batch"}}),
            ("ids: 0=batch, 1 = length", {"ids": {0: "batch", 1: "length"}}),
            ("images: 0,2,3", {"images": {0: "batch", 2: "axis_2", 3: "axis_3"}}),
        ],
    )
    def test_are_read_as_they_are_written(self, line: str, read: dict[str, dict[int, str]]) -> None:
        assert read_dynamic([line]) == read

    @pytest.mark.parametrize("line", ["x=1", "0=", "batch", "0=9", "ids: 0=batch; 1=length", "12=batch"])
    def test_what_cannot_be_read_is_refused_naming_the_field(self, line: str) -> None:
        with pytest.raises(RegistryError, match="write AXIS=NAME") as refused:
            read_dynamic([line])
        assert refused.value.field == "dynamic"

    @pytest.mark.parametrize(
        ("lines", "words"), [(["0", " ", "2"], "every input"), (["ids: 0", "", "ids: 1"], "ids")]
    )
    def test_of_one_input_stand_on_one_line(self, lines: list[str], words: str) -> None:
        with pytest.raises(RegistryError, match=f"has two lines for {words}; write its axes on one"):
            read_dynamic(lines)

    @pytest.mark.parametrize(
        ("dynamic", "inputs", "why"),
        [
            ("ids: 0", ["x: 1x2"], "there is no input 'ids'; there are: x"),
            ("2=width", ["x: 1x2"], "x has no axis 2"),
            ("0=batch", ["x: 1x2", "y: 2x2"], "'batch' have the sizes 1 and 2"),
        ],
    )
    def test_must_fit_the_inputs_that_were_typed(self, dynamic: str, inputs: list[str], why: str) -> None:
        with pytest.raises(RegistryError, match=why):
            check_axes(read_dynamic([dynamic]), read_inputs(inputs))
