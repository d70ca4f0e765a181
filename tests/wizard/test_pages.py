"""What the pages show: findings beside their fields, the picture, the review."""

from __future__ import annotations

import json

import pytest
from django.test import Client
from django.utils import timezone

from clusters.models import Node
from environments.curated import CURATED
from jobs.models import Draft, Experiment, PreparedEnvironment, Run, Snapshot
from jobs.sources.examples import examples
from jobs.wizard import drafts
from tests.jobs.builders import queued
from tests.markup import one_line
from tests.wizard.builders import FILES, address, preview, under, upload, with_code
from workspaces.access import Principal

pytestmark = pytest.mark.usefixtures("valkey")


class TestFindings:
    def test_a_script_that_is_not_there_is_said_under_the_script(
        self, client: Client, who: Principal, ready: Node
    ) -> None:
        page = preview(client, with_code(who), "source", script="trian.py")
        assert "trian.py is not in the source folder; did you mean train.py?" in under(page, "script")
        assert under(page, "arguments") == ""

    def test_counts_that_do_not_divide_are_said_under_the_count(
        self, client: Client, who: Principal, ready: Node
    ) -> None:
        page = preview(
            client,
            with_code(who),
            "distribution",
            kind="pytorch_process",
            pp_process_count="3",
            pp_node_count="2",
        )
        assert "3" in under(page, "pp_process_count") + under(page, "pp_node_count") + under(page, "kind")

    def test_more_gpus_than_any_node_has_names_the_nearest(
        self, client: Client, who: Principal, ready: Node
    ) -> None:
        page = preview(client, with_code(who), "resources", gpus_per_node="9")
        assert "alpha comes nearest with 2 GPUs: ask for at most 2 GPUs per node" in under(
            page, "gpus_per_node"
        )

    def test_an_unknown_cluster_is_said_under_the_cluster(
        self, client: Client, who: Principal, ready: Node
    ) -> None:
        assert "nowhere" in under(preview(client, with_code(who), "resources", cluster="nowhere"), "cluster")

    def test_an_unknown_environment_is_said_under_the_environment(
        self, client: Client, who: Principal, ready: Node
    ) -> None:
        assert "nothing" in under(
            preview(client, with_code(who), "environment", environment="nothing"), "environment"
        )

    def test_a_reserved_variable_is_said_under_the_variables(
        self, client: Client, who: Principal, ready: Node
    ) -> None:
        page = preview(
            client, with_code(who), "environment", variable_name=["TRAINHUB_TOKEN"], variable_value=["x"]
        )
        assert "TRAINHUB_TOKEN" in under(page, "variables")

    def test_nobody_is_nagged_while_typing(self, client: Client, who: Principal, ready: Node) -> None:
        draft = drafts.start(who)
        assert under(preview(client, draft, "source", script=""), "script") == ""
        posted = client.post(address(draft, "source"), {"go": "next"}).content.decode()
        assert "Name the script" in under(posted, "script")

    def test_those_of_other_steps_are_listed_at_review_with_a_way_there(
        self, client: Client, who: Principal, ready: Node
    ) -> None:
        draft = with_code(who, script="gone.py")
        page = client.get(address(draft, "review")).content.decode()
        assert f'href="{address(draft, "source")}#finding-script"' in page
        assert "disabled" in page[page.index("wz-submit") :][:200]

    def test_typed_text_is_shown_as_text(self, client: Client, who: Principal, ready: Node) -> None:
        page = preview(
            client, with_code(who), "source", script="train.py", arguments="'<script>alert(1)</script>'"
        )
        assert "<script>" not in page


class TestPicture:
    def test_shows_the_layout_before_anything_is_chosen(
        self, client: Client, who: Principal, ready: Node
    ) -> None:
        page = preview(
            client, drafts.start(who), "distribution", kind="pytorch_process", pp_process_count="4"
        )
        assert "your_script.py" in page
        assert page.count('name="chosen_rank"') == 4

    def test_an_unreadable_argument_is_no_reason_to_show_another_script(
        self, client: Client, who: Principal, ready: Node
    ) -> None:
        page = preview(client, with_code(who), "source", script="train.py", arguments="'open")
        assert "close it" in under(page, "arguments")
        assert "your_script.py" not in page

    def test_shows_the_command_of_the_chosen_rank(self, client: Client, who: Principal, ready: Node) -> None:
        draft = with_code(who, arguments="--me $RANK")
        drafts.put(draft, "distribution", kind="pytorch_process", pp_process_count="2", pp_backend="gloo")
        answer = client.post(address(draft, "review", "preview"), {"chosen_rank": "1"}).content.decode()
        assert '<span class="wz-filled" title="entered as $RANK">1</span>' in answer

    @pytest.mark.parametrize("rank", ["99", "-1", "x", "²"])
    def test_a_rank_that_is_not_there_shows_the_first(
        self, client: Client, who: Principal, ready: Node, rank: str
    ) -> None:
        answer = client.post(address(with_code(who), "review", "preview"), {"chosen_rank": rank})
        assert 'id="rank-0" form="wizard-form" checked' in one_line(answer.content.decode())

    def test_a_wrong_number_leaves_the_last_picture_as_it_was(
        self, client: Client, who: Principal, ready: Node
    ) -> None:
        page = preview(client, with_code(who), "distribution", kind="mpi", mpi_process_count="x")
        assert 'id="wizard-picture"' not in page
        assert "must be a whole number" in under(page, "mpi_process_count")

    def test_a_wrong_number_of_another_step_is_said_with_the_way_there(
        self, client: Client, who: Principal, ready: Node
    ) -> None:
        draft = with_code(who)
        drafts.put(draft, "distribution", kind="mpi", mpi_process_count="x")
        status = preview(client, draft, "resources")
        status = status[status.index('id="picture-status"') :]
        assert "must be a whole number" in status
        assert 'name="go" value="distribution"' in status

    def test_a_cluster_without_ready_nodes_still_shows_the_layout(
        self, client: Client, who: Principal
    ) -> None:
        assert "rank-0" in preview(client, with_code(who), "source", script="train.py")


class TestReview:
    def test_lists_every_rank_with_the_variables_in_which_it_differs(
        self, client: Client, who: Principal, ready: Node
    ) -> None:
        draft = with_code(who)
        drafts.put(draft, "distribution", kind="pytorch_process", pp_process_count="2", pp_backend="gloo")
        drafts.put(draft, "environment", variable_name="MINE", variable_value="yes", variable_kind="value")
        page = one_line(client.get(address(draft, "review")).content.decode())
        table = page[page.index("wz-table") : page.index('id="shared"')]
        assert "<b>RANK</b>=1" in table
        assert "<b>WORLD_SIZE</b>" not in table
        shared = page[page.index('id="shared"') :]
        assert "<b>WORLD_SIZE</b>=2" in shared
        assert '<code class="wz-variable wz-mine" title="set by you"><b>MINE</b>=yes' in shared
        assert "<b>TRAINHUB_TOKEN</b>=<i>assigned at launch</i>" in shared

    def test_hands_out_the_spec_that_the_api_takes(self, client: Client, who: Principal, ready: Node) -> None:
        draft = with_code(who, arguments="--epochs 3")
        spec = json.loads(client.get(f"/runs/new/{draft.pk}/run.json").content)
        assert spec["script"] == "train.py"
        assert spec["arguments"] == ["--epochs", "3"]

    def test_an_unfinished_draft_has_no_spec_to_hand_out(self, client: Client, who: Principal) -> None:
        assert client.get(f"/runs/new/{drafts.start(who).pk}/run.json").status_code == 404


class TestFastWays:
    @pytest.mark.parametrize("example", examples(), ids=lambda example: str(example.name))
    def test_an_example_opens_at_a_review_that_can_be_submitted(
        self, client: Client, who: Principal, ready: Node, example: object
    ) -> None:
        answer = client.post(f"/runs/new/example/{example.name}/", follow=True)  # type: ignore[attr-defined]
        page = answer.content.decode()
        assert answer.redirect_chain[-1][0].endswith("/review/")
        assert "disabled" not in page[page.index("wz-submit") :][:60]
        assert "th-tone-failed" not in page

    def test_examples_for_prepared_nodes_are_apart_until_a_node_is(
        self, client: Client, who: Principal, ready: Node
    ) -> None:
        def offered() -> tuple[str, str]:
            page = client.get("/runs/new/").content.decode()
            start, _, apart = page.partition("more whose packages a node builds first")
            return start, apart

        start, apart = offered()
        assert "/example/horovod-digits/" not in start
        assert "/example/horovod-digits/" in apart
        assert "Needs Open MPI on the node. One node with cmake" in apart
        horovod = next(item for item in CURATED if item.name == "TrainHub-Horovod-0.28")
        PreparedEnvironment.objects.create(
            node=ready, name=horovod.name, version=horovod.version, prepared_at=timezone.now()
        )
        start, apart = offered()
        assert "/example/horovod-digits/" in start
        assert "/example/horovod-tensorflow/" in apart

    def test_a_run_is_cloned_whole(self, client: Client, who: Principal, ready: Node) -> None:
        run = queued(who, arguments=["--epochs", "7"], tags={"a": "b"}, limits={"timeout_s": 60})
        client.post(f"/runs/{run.number}/clone/")
        draft = Draft.objects.get()
        spec = json.loads(client.get(f"/runs/new/{draft.pk}/run.json").content)
        named = {"display_name": ""}
        assert spec | named == run.spec | named
        client.post(f"/runs/new/{draft.pk}/submit/")
        assert Run.objects.get(cloned_from=run).number == run.number + 1

    def test_an_experiment_that_was_deleted_keeps_the_draft_and_names_the_remedy(
        self, client: Client, who: Principal, ready: Node
    ) -> None:
        draft = with_code(who)
        drafts.put(draft, "environment", experiment="birds")
        Experiment.objects.create(workspace=who.workspace, name="birds", deleted_at=timezone.now())
        answer = client.post(f"/runs/new/{draft.pk}/submit/")
        assert answer.status_code == 422
        assert "is deleted; restore it at /runs/deleted/, or choose another name" in answer.content.decode()
        assert not Run.objects.exists()
        draft.refresh_from_db()
        assert draft.submitted_run is None

    def test_code_that_is_no_longer_kept_is_named(self, client: Client, who: Principal, ready: Node) -> None:
        draft = with_code(who)
        Snapshot.objects.all().delete()
        page = client.get(address(draft, "source")).content.decode()
        assert "Code that is no longer kept" in page
        assert "Upload it again, or choose another source." in page

    def test_what_is_not_there_is_not_found(self, client: Client, who: Principal) -> None:
        assert client.post("/runs/new/example/nothing/").status_code == 404
        assert client.get(address(drafts.start(who), "nothing")).status_code == 404


class TestUpload:
    def test_a_zip_becomes_the_source_of_a_new_draft_with_its_likely_script(
        self, client: Client, who: Principal
    ) -> None:
        page = upload(client, "/runs/new/upload/", FILES).headers["Location"]
        assert 'value="train.py"' in client.get(page).content.decode()

    def test_replaces_the_source_of_a_draft_and_keeps_the_rest(self, client: Client, who: Principal) -> None:
        draft = with_code(who, arguments="--epochs 3")
        before = draft.steps["source"]
        upload(client, f"/runs/new/{draft.pk}/upload/", {"other.py": "pass\n"})
        draft.refresh_from_db()
        assert draft.steps["source"]["arguments"] == before["arguments"]
        assert draft.steps["source"]["script"] == before["script"]
        assert draft.steps["source"]["source"] != before["source"]

    def test_a_script_is_answered_in_json(self, client: Client, who: Principal) -> None:
        answer = upload(client, "/runs/new/upload/", FILES, accept="application/json")
        assert answer.json()["url"].endswith("/source/")

    @pytest.mark.parametrize("files", [{"../up.py": ""}, {"/etc/x.py": ""}, {}])
    def test_a_hostile_or_empty_zip_is_refused_with_a_sentence(
        self, client: Client, who: Principal, files: dict[str, str | bytes]
    ) -> None:
        answer = upload(client, "/runs/new/upload/", files, accept="application/json")
        assert answer.status_code == 422
        assert answer.json()["message"]
        assert not Draft.objects.exists()

    def test_what_is_no_zip_is_told_on_the_page(self, client: Client, who: Principal) -> None:
        draft = with_code(who)
        answer = client.post(f"/runs/new/{draft.pk}/upload/", follow=True)
        assert "Choose a zip file or a folder" in answer.content.decode()
