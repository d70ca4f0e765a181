"""What a draft gets without being asked: the cluster and the GPUs. And that all problems are said at once."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from clusters.models import Cluster, Node
from jobs.models import Draft, Run
from jobs.sources.examples import examples
from jobs.wizard import drafts
from jobs.wizard.evaluation import evaluate
from tests.jobs.builders import node
from tests.wizard.builders import address, post, preview, typed, under, with_code
from workspaces.access import Principal

pytestmark = pytest.mark.usefixtures("valkey")
OFFERED = '<input type="radio" name="cluster" value="{}"'


class TestCluster:
    @pytest.mark.parametrize("example", [example.name for example in examples()])
    def test_an_example_starts_by_two_clicks_where_no_cluster_is_called_local(
        self, client: Client, who: Principal, example: str
    ) -> None:
        for number in range(4):
            node(f"node-{number}", cluster="simulated-h100", gpus=8)
        review = client.post(f"/runs/new/example/{example}/").headers["Location"]
        assert "Fix the errors below first." not in client.get(review).content.decode()
        answer = client.post(address(Draft.objects.get(), "submit"))
        assert answer.status_code == 302, answer.content
        assert Run.objects.get().spec["resources"]["cluster"] == "simulated-h100"

    def test_a_name_that_never_existed_is_not_offered(self, client: Client, who: Principal) -> None:
        node("alpha", cluster="a")
        draft = with_code(who)
        post(client, draft, "resources", go="resources", cluster="local")
        page = client.get(address(draft, "resources")).content.decode()
        assert OFFERED.format("local") not in page
        assert OFFERED.format("a") in page
        assert "There is no cluster &#x27;local&#x27; here; there are: a." in under(page, "cluster")

    def test_one_that_is_deleted_is_still_shown_in_a_draft_that_names_it(
        self, client: Client, who: Principal
    ) -> None:
        node("alpha", cluster="a")
        gone = Cluster.objects.create(name="gone")
        draft = with_code(who)
        post(client, draft, "resources", go="resources", cluster="gone")
        Cluster.objects.filter(pk=gone.pk).update(deleted_at=gone.created_at)
        page = client.get(address(draft, "resources")).content.decode()
        assert OFFERED.format("gone") in page

    def test_the_default_is_chosen_on_the_page(self, client: Client, who: Principal) -> None:
        node("alpha", cluster="a")
        node("beta", cluster="b", gpus=2)
        page = client.get(address(with_code(who), "resources")).content.decode()
        assert f'{OFFERED.format("b")} data-gpus="1" checked>' in page
        assert f'{OFFERED.format("a")} data-gpus="0">' in page


class TestGpus:
    def test_an_own_folder_on_a_gpu_cluster_gets_one(self, who: Principal, ready: Node) -> None:
        spec = evaluate(with_code(who), who).spec
        assert spec is not None
        assert spec.resources.gpus_per_node == 1

    def test_each_process_gets_one_as_far_as_there_are(
        self, client: Client, who: Principal, ready: Node
    ) -> None:
        draft = with_code(who)
        for processes, gpus in ((2, 2), (4, 2)):
            fields = {"kind": "pytorch_process", "pp_process_count": str(processes)}
            post(client, draft, "distribution", go="resources", **fields)
            draft.refresh_from_db()
            part = evaluate(draft, who).forms["resources"].part()
            assert (processes, getattr(part, "gpus_per_node", None)) == (processes, gpus)

    def test_a_cluster_without_gpus_gives_none(self, who: Principal) -> None:
        node("alpha", cluster="cpus")
        spec = evaluate(with_code(who), who).spec
        assert spec is not None
        assert spec.resources.gpus_per_node == 0

    def test_what_was_saved_is_kept(self, client: Client, who: Principal, ready: Node) -> None:
        draft = with_code(who)
        post(client, draft, "resources", gpus_per_node="0")
        draft.refresh_from_db()
        spec = evaluate(draft, who).spec
        assert spec is not None
        assert spec.resources.gpus_per_node == 0

    def test_an_example_for_cpus_stays_one(self, client: Client, who: Principal, ready: Node) -> None:
        client.post("/runs/new/example/hello/")
        spec = evaluate(Draft.objects.get(), who).spec
        assert spec is not None
        assert spec.resources.gpus_per_node == 0


class TestAllAtOnce:
    def test_a_bad_time_limit_hides_no_other_problem(
        self, client: Client, who: Principal, ready: Node
    ) -> None:
        page = preview(client, with_code(who), "resources", timeout="soon", gpus_per_node="64")
        assert "Time limit" in under(page, "timeout")
        assert "alpha comes nearest with 2 GPUs" in under(page, "gpus_per_node")

    def test_what_is_wrong_is_never_submitted_with_its_default(
        self, client: Client, who: Principal, ready: Node
    ) -> None:
        draft = with_code(who)
        drafts.save_step(draft, "resources", typed("resources", timeout="soon"))
        assert client.post(address(draft, "submit")).status_code == 422
        assert not Run.objects.exists()

    def test_a_sentence_names_the_field_as_the_form_does(
        self, client: Client, who: Principal, ready: Node
    ) -> None:
        draft = with_code(who)
        fields = {"kind": "pytorch_process", "pp_process_count": "5", "pp_node_count": "2"}
        post(client, draft, "distribution", go="resources", **fields)
        page = client.get(address(draft, "review")).content.decode()
        problems = re.findall(r'<span class="th-off">\w+: </span>(.*?)<a', page, re.DOTALL)
        assert any("“Nodes”" in problem for problem in problems), problems
        for name in ("node_count", "process_count", "gpus_per_node"):
            assert not any(name in problem for problem in problems)
