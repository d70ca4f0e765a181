"""S21: no CSV file of the hub holds a text that a spreadsheet would run as a formula."""

from __future__ import annotations

import ast
import csv
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusters.api.telemetry_answers import GpuLabel, SeriesAnswer, csv_response, heat_csv_response
from clusters.telemetry.bins import Grid
from clusters.telemetry.series import NodeSeries
from tests.test_architecture import FLOORS, modules
from tracking.curves.download import _rows
from tracking.metrics.points import Points
from tracking.usage.table import csv_text
from tracking.usage.usage_report import UsageLine
from workspaces.spreadsheets import plain_text

FORMULAS = [
    "=cmd|' /C calc'!A0", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", '"=1+1"', "'=1", '  "  =1',
    "\ufeff=1", "\uff1d1",
    " -1",
]  # fmt: skip
HARMLESS = ["loss", "train/loss", "GPU-1a2b-3c", "a=b", "1-2", "'quoted'", "", "ünïcode", "x\t=1"]


def one_line(text: str) -> str:
    return text.replace("\r", " ").replace("\n", " ")


@pytest.mark.parametrize("text", FORMULAS)
def test_what_begins_like_a_formula_is_made_plain_text(text: str) -> None:
    assert plain_text(text) == f"'{one_line(text)}"


@pytest.mark.parametrize("text", HARMLESS)
def test_other_text_stays_as_it_is(text: str) -> None:
    assert plain_text(text) == text


@given(st.text())
def test_no_text_begins_like_a_formula_afterwards(text: str) -> None:
    assert not plain_text(text).startswith(("=", "+", "-", "@", "\t", "\r"))


@pytest.mark.parametrize("text", FORMULAS)
def test_names_in_the_files_of_usage_metrics_and_telemetry_are_plain_text(text: str) -> None:
    line = UsageLine(
        name=text, title=text, gpu_hours=1.0, node_hours=1.0, energy_wh=None, measured_gpu_hours=0.0, runs=1
    )
    points = Points(np.array([1]), np.array([1000]), np.array([-0.5]))
    on = Grid(start=1_800_000_000, step_s=10, points=1)
    device = GpuLabel(text, 0, "H100")
    told = SeriesAnswer(text, NodeSeries(on, {}, {text: {}}), [device])
    files = [
        csv_text("run", [line]),
        csv_text("person", [line]),
        "metric,step,time,value\n" + _rows(text, points).decode(),
        csv_response("a", [told], ["power_w"], []).content.decode(),
        heat_csv_response("a", "power_w", on, [(text, device, None)]).content.decode(),
    ]
    for file in files:
        _, *rows = csv.reader(io.StringIO(file, newline=""))
        assert rows
        cells = [cell for row in rows for cell in row if one_line(text) in cell]
        assert cells
        assert set(cells) == {f"'{one_line(text)}"}


def test_negative_numbers_stay_numbers() -> None:
    assert b",-0.5\n" in _rows("loss", Points(np.array([1]), np.array([1000]), np.array([-0.5])))


def test_whatever_writes_csv_knows_of_formulas() -> None:
    wrong = []
    for path in modules(*FLOORS):
        text = path.read_text()
        used = {node.attr for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Attribute)}
        if used & {"writerow", "writerows"} and "plain_text" not in text:
            wrong.append(str(path))
    assert not wrong, f"these write CSV files without plain_text: {wrong}"
