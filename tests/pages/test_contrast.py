"""The pairs of colours that pages put on each other, read from tokens.css and held to WCAG AA."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TOKENS = (Path(__file__).resolve().parents[2] / "static" / "css" / "tokens.css").read_text()
STATES = ("waiting", "preparing", "running", "finalizing", "completed", "failed", "canceled")
TEXT, GRAPHIC = 4.5, 3.0


def tokens(theme: str) -> dict[str, str]:
    light, dark = TOKENS.split('[data-bs-theme="dark"]')
    found = dict(re.findall(r"--th-([\w-]+): ([^;]+);", light))
    return found if theme == "light" else found | dict(re.findall(r"--th-([\w-]+): ([^;]+);", dark))


def rgb(value: str) -> tuple[float, ...]:
    return tuple(int(value[at : at + 2], 16) / 255 for at in (1, 3, 5))


def mixed(over: str, under: str, percent: str) -> tuple[float, ...]:
    share = int(percent.rstrip("%")) / 100
    return tuple(a * share + b * (1 - share) for a, b in zip(rgb(over), rgb(under), strict=True))


def luminance(color: tuple[float, ...]) -> float:
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in color]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
class TestContrast:
    @pytest.mark.parametrize("text", ["text", "muted", "accent"])
    @pytest.mark.parametrize("ground", ["ground", "surface", "raised", "hover", "chosen", "log-ground"])
    def test_text_can_be_read_on_every_ground(self, theme: str, text: str, ground: str) -> None:
        values = tokens(theme)
        assert contrast(rgb(values[text]), rgb(values[ground])) >= TEXT

    @pytest.mark.parametrize("state", STATES)
    def test_a_pill_can_be_read_on_its_own_tint(self, theme: str, state: str) -> None:
        values = tokens(theme)
        assert contrast(rgb(values[state]), mixed(values[state], values["surface"], values["tint"])) >= TEXT

    @pytest.mark.parametrize("state", STATES)
    def test_a_part_of_the_timeline_stands_out(self, theme: str, state: str) -> None:
        values = tokens(theme)
        assert contrast(rgb(values.get(f"{state}-fill", values[state])), rgb(values["ground"])) >= GRAPHIC

    @pytest.mark.parametrize("index", range(16))
    def test_the_colours_of_the_terminal_can_be_read(self, theme: str, index: int) -> None:
        values = tokens(theme)
        assert contrast(rgb(values[f"ansi-{index}"]), rgb(values["log-ground"])) >= TEXT

    @pytest.mark.parametrize("index", range(1, 9))
    def test_the_lines_of_charts_stand_out(self, theme: str, index: int) -> None:
        values = tokens(theme)
        assert contrast(rgb(values[f"chart-{index}"]), rgb(values["surface"])) >= GRAPHIC

    def test_buttons_marks_and_field_borders(self, theme: str) -> None:
        values = tokens(theme)
        assert contrast(rgb(values["on-accent"]), rgb(values["accent"])) >= TEXT
        assert contrast(rgb(values["on-mark"]), rgb(values["mark"])) >= TEXT
        assert contrast(rgb(values["field-line"]), rgb(values["surface"])) >= GRAPHIC
