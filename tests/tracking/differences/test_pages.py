from __future__ import annotations

import pytest
from django.test import Client

from clusters.models import Node
from jobs.models import Run, RunTag
from tests.jobs import builders
from tests.jobs.builders import queued, snapshot
from tests.markup import one_line
from tests.pages.builders import HTMX
from tests.people import client_of, make_stranger, make_viewer
from tests.tracking.builders import logged_run
from workspaces.access import Principal

KINDS = ("source", "environment", "plan", "gpus")


@pytest.fixture
def node(who: Principal) -> Node:
    return builders.node(gpus=2)


@pytest.fixture
def viewer(who: Principal) -> Client:
    return client_of(make_viewer())


@pytest.fixture
def pair(who: Principal, node: Node) -> tuple[Run, Run]:
    """Two runs of one script, of which one line differs."""
    runs = [
        queued(
            who,
            source={"type": "snapshot", "id": snapshot(who, {"train.py": f"lr = {lr}\nprint(lr)\n"}).sha256},
        )
        for lr in ("0.1", "0.2<b>")
    ]
    return runs[0], runs[1]


def shown(client: Client, kind: str, *runs: Run, **more: str) -> str:
    numbers = ",".join(str(run.number) for run in runs)
    response = client.get(f"/compare/differences/{kind}/", {"runs": numbers, **more}, headers=HTMX)
    assert response.status_code == 200
    return one_line(response.content.decode())


class TestSource:
    def test_shows_what_was_taken_out_and_put_in(self, viewer: Client, pair: tuple[Run, Run]) -> None:
        text = shown(viewer, "source", *pair)
        assert '<td class="df-sign">-</td><td class="df-text">lr = 0.1</td>' in text
        assert '<td class="df-sign">+</td><td class="df-text">lr = 0.2&lt;b&gt;</td>' in text

    def test_is_held_against_the_base_that_is_chosen(self, viewer: Client, pair: tuple[Run, Run]) -> None:
        text = shown(viewer, "source", *pair, base=str(pair[1].number))
        assert '<td class="df-sign">+</td><td class="df-text">lr = 0.1</td>' in text
        assert f'<option value="{pair[1].number}" selected>' in text

    def test_says_that_it_is_the_same(self, viewer: Client, who: Principal, node: Node) -> None:
        assert "The source is identical, byte for byte." in shown(viewer, "source", queued(who), queued(who))

    def test_of_a_run_from_elsewhere_is_its_commit(self, viewer: Client, pair: tuple[Run, Run]) -> None:
        run = logged_run()
        RunTag.objects.create(
            run=run, experiment=run.experiment, key="mlflow.source.git.commit", value="4f2a91c"
        )
        text = shown(viewer, "source", *pair, run)
        assert "4f2a91c" in text
        assert f"Run {run.number} is external: its source is not stored here" in text


class TestEveryKind:
    @pytest.mark.parametrize("kind", KINDS)
    def test_is_a_part_and_a_page(self, viewer: Client, pair: tuple[Run, Run], kind: str) -> None:
        assert "<html" not in shown(viewer, kind, *pair)
        page = viewer.get(f"/compare/differences/{kind}/?runs={pair[0].number},{pair[1].pk}")
        assert page.status_code == 200
        assert "<html" in page.content.decode()

    @pytest.mark.parametrize("kind", KINDS)
    def test_of_runs_from_elsewhere_says_what_is_missing(
        self, viewer: Client, who: Principal, kind: str
    ) -> None:
        text = shown(viewer, kind, logged_run(), logged_run())
        assert "external" in text or "None of these runs used GPUs" in text

    @pytest.mark.parametrize("kind", KINDS)
    def test_needs_two_runs(self, viewer: Client, pair: tuple[Run, Run], kind: str) -> None:
        assert "needs two existing runs" in shown(viewer, kind, pair[0])

    @pytest.mark.parametrize("runs", ["", "1,%3Cb%3E", ",".join(map(str, range(30)))])
    def test_refuses_names_that_are_none(self, viewer: Client, runs: str) -> None:
        response = viewer.get(f"/compare/differences/plan/?runs={runs}")
        assert response.status_code == 400
        assert "runs" in response.content.decode()

    def test_is_not_there_for_strangers_nor_of_an_unknown_kind(
        self, viewer: Client, pair: tuple[Run, Run]
    ) -> None:
        assert client_of(make_stranger()).get("/compare/differences/plan/?runs=1,2").status_code == 404
        assert viewer.get("/compare/differences/weather/?runs=1,2").status_code == 404
