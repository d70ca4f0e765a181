from __future__ import annotations

import csv
import io
from datetime import UTC, datetime

import pytest
from django.test import Client

from tests.api.asking import refused
from tests.people import api_client, client_of, make_stranger, make_viewer
from tests.tracking.usage.test_reading import AUGUST, JULY, entry
from tracking.usage.months import add_months, month_of
from workspaces.access import Principal

NOW = month_of(datetime.now(UTC))


@pytest.fixture
def viewer(who: Principal) -> Client:
    return client_of(make_viewer())


def page_text(client: Client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 200
    return response.content.decode()


class TestPage:
    def test_shows_this_month_to_a_viewer(self, who: Principal, viewer: Client) -> None:
        entry(who, 1, NOW, 2.5, energy_j=7_200_000.0)
        entry(who, 2, add_months(NOW, -1), 40.0, experiment_name="last month's")
        text = page_text(viewer, "/usage/")
        assert "2.50</strong>" in text
        assert "2.00 kWh" in text
        assert "last month's" not in text

    def test_shows_the_month_or_all_that_is_asked_for(self, who: Principal, viewer: Client) -> None:
        entry(who, 1, JULY, 2.0)
        entry(who, 2, AUGUST, 3.0)
        assert "2.00</strong>" in page_text(viewer, "/usage/?month=2026-07")
        assert "5.00</strong>" in page_text(viewer, "/usage/?month=all")

    def test_says_that_energy_was_not_measured(self, who: Principal, viewer: Client) -> None:
        entry(who, 1, NOW, 2.5)
        assert "energy not measured" in page_text(viewer, "/usage/")

    def test_draws_node_hours_where_there_are_no_gpus(self, who: Principal, viewer: Client) -> None:
        entry(who, 1, NOW, 0.0, node_seconds=3600.0)
        assert "Node-hours by month" in page_text(viewer, "/usage/")

    def test_says_so_where_nothing_was_used(self, viewer: Client) -> None:
        assert "No usage" in page_text(viewer, "/usage/?month=2020-01")

    def test_is_not_there_for_a_stranger(self, who: Principal) -> None:
        assert client_of(make_stranger()).get("/usage/").status_code == 404

    def test_gives_a_table_as_csv(self, who: Principal, viewer: Client) -> None:
        entry(who, 1, JULY, 2.0, energy_j=3600.0, experiment_name="=cmd()")
        response = viewer.get("/usage/csv/?month=2026-07&by=experiment")
        assert response["Content-Disposition"] == 'attachment; filename="usage-experiment-2026-07.csv"'
        heading, row = csv.reader(io.StringIO(response.content.decode()))
        assert heading == ["experiment", "gpu_hours", "node_hours", "energy_wh", "measured_gpu_hours", "runs"]
        assert row == ["'=cmd()", "2", "1", "1", "2", "1"]

    def test_gives_no_table_by_what_nothing_is_added_up_by(self, viewer: Client) -> None:
        assert viewer.get("/usage/csv/?by=gpu").status_code == 404


class TestApi:
    def test_adds_up_by_what_is_asked_for(self, who: Principal) -> None:
        entry(who, 1, JULY, 2.0, energy_j=3600.0)
        entry(who, 2, AUGUST, 4.0)
        api = api_client(make_viewer())
        told = api.get("/api/v1/usage/?by=month&from=2026-07&to=2026-08").json()
        assert [(line["name"], line["gpu_hours"], line["energy_wh"]) for line in told["results"]] == [
            ("2026-07", 2.0, 1.0),
            ("2026-08", 4.0, None),
        ]
        assert (told["total"]["gpu_hours"], told["total"]["runs"]) == (6.0, 2)
        assert api.get("/api/v1/usage/?to=2026-07").json()["total"]["gpu_hours"] == 2.0

    def test_gives_csv_with_the_names_of_runs(self, who: Principal) -> None:
        entry(who, 7, JULY, 0.25)
        response = api_client(make_viewer()).get("/api/v1/usage/?by=run&as=csv")
        assert response["Content-Type"].startswith("text/csv")
        assert response.content.decode().splitlines()[1] == "7,,0.25,0.125,,0,1"

    @pytest.mark.parametrize(
        ("query", "words"),
        [
            ("from=2026", "must be a month"),
            ("to=x", "must be a month"),
            ("month=2026-07", "not a known parameter"),
            ("by=gpu", "must be one of"),
            ("as=xls", "must be one of"),
        ],
    )
    def test_names_the_parameter_that_is_wrong(self, who: Principal, query: str, words: str) -> None:
        refused(
            api_client(make_viewer()).get(f"/api/v1/usage/?{query}"),
            400,
            query.split("=", maxsplit=1)[0],
            words,
        )
