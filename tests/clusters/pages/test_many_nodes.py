"""The pages of clusters with more nodes than one wants to read at once."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.utils import timezone

from clusters.models import Gpu, Hearing
from clusters.overview import MAX_FOREMOST
from clusters.views import NODES_AT_ONCE
from tests.clusters.builders import ready_node
from tests.people import client_of, make_viewer
from trainhub_launch.machine import GPU_LOST

pytestmark = pytest.mark.django_db
COUNT = NODES_AT_ONCE + 5


@pytest.fixture
def troubled() -> list[str]:
    """A cluster of many nodes; returns those that need attention, the last by name."""
    for number in range(COUNT - 2):
        ready_node(f"node-{number:03d}", f"GPU-{number}")
    ready_node("odd-gpu", "GPU-odd")
    Gpu.objects.filter(uuid="GPU-odd").update(state=GPU_LOST)
    now = timezone.now()
    # The hub has listened for as long as this node was silent.
    Hearing.objects.update_or_create(pk=1, defaults={"since": now - timedelta(days=2), "until": now})
    ready_node("odd-silent", at=now - timedelta(days=1))
    return ["odd-gpu", "odd-silent"]


def shown(address: str, *, is_refresh: bool = False) -> tuple[list[str], str]:
    """Returns the names of the nodes, and the page."""
    headers = {"HX-Request": "true"} if is_refresh else {}
    page = client_of(make_viewer()).get(address, headers=headers).content.decode()
    return re.findall(r'id="node-([^"]+)"', page), page


class TestClusterPage:
    def test_shows_so_many_nodes_at_once_and_counts_all(self, troubled: list[str]) -> None:
        names, page = shown("/clusters/local/")
        assert names == [f"node-{number:03d}" for number in range(NODES_AT_ONCE)]
        assert f"{COUNT - 1} of {COUNT}" in page  # those that are ready
        assert f"1–{NODES_AT_ONCE} of {COUNT}" in page
        assert ">Next<" in page
        names, page = shown("/clusters/local/?page=2")
        assert names[-2:] == troubled
        assert len(names) == COUNT - NODES_AT_ONCE
        assert ">Previous<" in page

    def test_a_refresh_stays_where_one_is(self, troubled: list[str]) -> None:
        _, page = shown("/clusters/local/?page=2&q=o")
        assert 'hx-get="/clusters/local/?page=2&amp;q=o"' in page
        names, part = shown("/clusters/local/?page=2&q=o", is_refresh=True)
        assert names[-2:] == troubled
        assert "<html" not in part

    def test_finds_nodes_by_a_part_of_their_name(self, troubled: list[str]) -> None:
        assert shown("/clusters/local/?q=E-01")[0] == [f"node-{number:03d}" for number in range(10, 20)]
        assert "No node’s name contains “gone”." in shown("/clusters/local/?q=gone")[1]

    def test_finds_the_nodes_that_need_attention(self, troubled: list[str]) -> None:
        assert shown("/clusters/local/?troubled=1")[0] == troubled
        assert shown("/clusters/local/?troubled=1&q=gpu")[0] == troubled[:1]

    def test_says_that_no_node_needs_attention(self) -> None:
        ready_node("alpha", "GPU-a")
        assert "No node needs attention." in shown("/clusters/local/?troubled=1")[1]

    def test_few_nodes_need_no_search(self) -> None:
        ready_node("alpha", "GPU-a")
        assert "Find nodes by name" not in shown("/clusters/local/")[1]


def test_all_clusters_show_some_nodes_of_each_and_first_those_that_need_attention(
    troubled: list[str],
) -> None:
    names, page = shown("/clusters/")
    assert names[:2] == troubled
    assert len(names) == MAX_FOREMOST
    assert f"All {COUNT} nodes of local" in page


def test_the_dashboard_shows_some_machines_and_counts_all(troubled: list[str]) -> None:
    page = client_of(make_viewer()).get("/").content.decode()
    names = re.findall(r'th-machine-name" href="/nodes/([^/]+)/"', page)
    assert names[:2] == troubled
    assert len(names) == MAX_FOREMOST
    assert f"{MAX_FOREMOST} of {COUNT}, those that need attention first" in page
    # One of the nodes has no GPU.
    assert re.search(rf"<strong>0<small> of {COUNT - 1}</small></strong><span>GPUs busy", page)
