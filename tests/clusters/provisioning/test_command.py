from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection

from clusters.management.commands import cluster as command
from clusters.models import Cluster
from tests.clusters.builders import cluster, ready_node
from tests.hub import eventually
from tests.people import make_operator, make_viewer

pytestmark = pytest.mark.django_db


def output_of(*arguments: str, **options: Any) -> str:
    out = io.StringIO()
    call_command("cluster", *arguments, stdout=out, stderr=out, **options)
    return out.getvalue().strip()


def refused(*arguments: str) -> tuple[int, str]:
    err = io.StringIO()
    with pytest.raises(SystemExit) as left:
        call_command("cluster", *arguments, stdout=err, stderr=err)
    return int(left.value.code or 0), err.getvalue().strip()


class TestCreate:
    def test_makes_a_cluster_and_finds_it_the_next_time(self) -> None:
        make_operator()
        assert (
            output_of("create", "gpu-cluster", "--description", "for all", "--idle-s", "60")
            == "Created cluster gpu-cluster."
        )
        again = output_of("create", "gpu-cluster", "--description", "other")
        assert again == "Found existing cluster gpu-cluster; nothing is changed."
        made = Cluster.objects.get()
        assert (made.description, made.idle_s) == ("for all", 60)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (("create", "a b"), "name: "),
            (("create", "grown", "--max-nodes", "3"), "provider: is needed for a cluster that grows"),
            (("create", "new", "--min-nodes", "2"), "min_nodes: is 2, more than max_nodes, 0"),
            (("create", "new", "--idle-s", "-1"), "idle_s: must be between 0 and 2592000"),
            (("create", "new", "--max-nodes", "1001"), "max_nodes: must be between 0 and 1000"),
            (("drain", "gone"), "name: there is no"),
        ],
    )
    def test_what_cannot_be_is_refused_by_its_field(self, arguments: tuple[str, ...], message: str) -> None:
        make_operator()
        code, told = refused(*arguments)
        assert code == 2
        assert told.startswith(message)

    def test_only_operators_do_it(self) -> None:
        make_viewer()
        assert refused("--user", "vera", "create", "gpu-cluster")[0] == 2
        assert not Cluster.objects.exists()


class TestWait:
    def test_ends_once_so_many_nodes_are_ready(self) -> None:
        ready_node("alpha")
        assert output_of("wait", "local", "--nodes", "1") == "1 of 1 nodes are ready."

    def test_leaves_with_1_when_they_are_not_in_time(self) -> None:
        ready_node("alpha")
        code, told = refused("wait", "local", "--nodes", "2", "--timeout-minutes", "0")
        assert code == 1
        assert told.splitlines() == ["1 of 2 nodes are ready.", "The nodes were not ready within 0 minutes."]

    @pytest.mark.django_db(transaction=True)
    def test_goes_on_until_a_node_is_ready(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(command, "POLL_INTERVAL_S", 0.05)
        cluster("local")
        out = io.StringIO()

        def wait() -> None:
            try:
                call_command("cluster", "wait", "local", "--nodes", "1", stdout=out, stderr=out)
            finally:
                connection.close()

        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(wait)
            eventually(out.getvalue, 20, "it has counted the nodes")
            ready_node("alpha")
            waiting.result(20)
        assert out.getvalue().splitlines() == ["0 of 1 nodes are ready.", "1 of 1 nodes are ready."]


class TestVerbs:
    def test_drain_resume_list_and_delete(self) -> None:
        make_operator()
        ready_node("alpha", "GPU-a")
        assert output_of("drain", "local") == "local is drained."
        assert output_of("list") == "local\t1 of 1 nodes ready\t1 of 1 GPUs free\tdrained"
        assert output_of("resume", "local") == "local takes runs."
        code, told = refused("delete", "local")
        assert code == 2
        assert "still has 1 node: alpha" in told
        output_of("create", "empty")
        assert output_of("delete", "empty") == "empty is deleted."
