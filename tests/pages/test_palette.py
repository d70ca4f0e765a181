"""What the command palette offers, by workspace and role."""

from __future__ import annotations

from typing import Any

import pytest

from clusters.models import Cluster, Gpu, Node
from jobs.models import Experiment
from registry.models import RegisteredModel
from tests.pages.builders import failed
from tests.people import (
    client_of,
    make_contributor,
    make_operator,
    make_person,
    make_viewer,
    make_workspace,
)
from workspaces.access import Principal
from workspaces.models import User
from workspaces.states import Role

pytestmark = pytest.mark.django_db


def offered(user: User, text: str = "") -> dict[str, dict[str, Any]]:
    """Returns the hits by their titles."""
    answer = client_of(user).get("/search/palette/", {"q": text})
    assert answer.status_code == 200
    return {hit["title"]: hit for hit in answer.json()["hits"]}


class TestActions:
    def test_everybody_is_offered_what_the_role_permits(self) -> None:
        assert not {"New run", "Add a machine", "Manage members"} & offered(make_viewer()).keys()
        assert "New run" in offered(make_contributor())
        assert {"New run", "Add a machine", "Manage members"} <= offered(make_operator()).keys()

    def test_they_are_found_by_other_words_too(self) -> None:
        assert list(offered(make_viewer(), "DARK")) == ["Switch theme"]
        assert offered(make_viewer(), "log out")["Sign out"]["command"] == "sign-out"

    def test_each_has_a_page_or_a_command(self) -> None:
        assert all(hit["url"] or hit["command"] for hit in offered(make_operator()).values())


class TestObjects:
    def test_of_each_kind_are_found(self, who: Principal) -> None:
        run = failed(who)
        node = Node.objects.select_related("cluster").first() or Node.objects.create(
            name="alpha", cluster=Cluster.objects.get_or_create(name="local")[0]
        )
        Gpu.objects.create(node=node, uuid="GPU-abc", index=3, name="NVIDIA H200")
        RegisteredModel.objects.create(workspace=who.workspace, name="birds")
        viewer = make_viewer()
        assert offered(viewer, str(run.number))[run.display_name or str(run)]["url"] == f"/runs/{run.number}/"
        assert offered(viewer, node.name)[node.name]["url"] == f"/nodes/{node.name}/"
        for text in ("gpu 3", "abc", "h200"):
            assert offered(viewer, text)[f"GPU 3 of {node.name}"]["url"] == "/gpus/GPU-abc/"
        assert offered(viewer, node.cluster.name)[node.cluster.name]["detail"] in ("cluster", "experiment")
        assert offered(viewer, "bird")["birds"]["url"] == "/models/birds/"
        assert offered(viewer, run.experiment.name)[run.experiment.name]["detail"] == "experiment"

    def test_of_another_workspace_are_not(self, who: Principal) -> None:
        run = failed(who)
        RegisteredModel.objects.create(workspace=who.workspace, name="birds")
        Experiment.objects.create(workspace=who.workspace, name="private birds")
        outsider = make_person("otto", Role.OWNER, make_workspace("elsewhere"))
        assert not offered(outsider, "birds")
        assert not offered(outsider, f"run {run.number}")

    def test_characters_that_a_database_refuses_find_nothing(self) -> None:
        assert not offered(make_viewer(), "\x00no such thing%_")
