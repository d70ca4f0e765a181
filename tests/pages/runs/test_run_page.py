from __future__ import annotations

from pathlib import Path
from signal import Signals

import pytest

from jobs.models import Attempt, Member, Run
from jobs.scheduling import run_actions
from jobs.states import MemberState, RunState
from jobs.views.cause import first_failed
from tests.jobs.builders import alive, ended, launched, node, processes, queued
from tests.markup import one_line
from tests.pages.builders import HTMX, LOGS, TRACEBACK, completed, failed, running, text_of
from tests.people import client_of, make_viewer
from workspaces.access import Principal

pytestmark = pytest.mark.django_db


def page(run_number: int, part: str = "", query: str = "") -> str:
    return text_of(client_of(make_viewer()), f"/runs/{run_number}/{part}{query}")


def cause_of(text: str) -> str:
    return one_line(text[text.index("th-cause") : text.index("th-tabs")])


class TestHeader:
    def test_names_the_run_and_its_phases(self, who: Principal) -> None:
        _, run = running(who, "digits on two")
        text = page(run.number)
        for words in (
            "digits on two",
            f"run {run.number}",
            run.pk,
            "Provisioning",
            "Preparing",
            "Running",
            "PyTorch ×2",
        ):
            assert words in text, words

    def test_a_waiting_run_says_what_it_waits_for(self, who: Principal) -> None:
        run = launched(who)
        assert "no node that is ready" in page(run.number)

    def test_the_part_that_htmx_fetches_is_the_header_alone(self, who: Principal) -> None:
        _, run = running(who)
        part = page(run.number, "header/")
        assert "th-phases" in part
        assert "<html" not in part


class TestCause:
    def test_the_page_of_a_failed_run_leads_with_the_rank_its_exception_and_its_traceback(
        self, who: Principal
    ) -> None:
        run = failed(who)
        text = page(run.number)
        cause = cause_of(text)
        for words in (
            "ValueError: no &lt;b&gt;batch&lt;/b&gt; left",
            "Rank 1 exited with code 1 on alpha",
            "boom()",
        ):
            assert words in cause, words
        assert f"?log={LOGS[1]}#b=7" in cause, "the link jumps to where the traceback begins"

    def test_a_known_failure_comes_with_its_remedy_and_where_to_apply_it(self, who: Principal) -> None:
        alpha, run = running(who)
        alpha.log(
            run,
            LOGS[1],
            0,
            b"Traceback (most recent call last):\n  File a\nModuleNotFoundError: No module named 'apex'\n",
        )
        alpha.tell(run, "done", ended(0), ended(1, 1))
        cause = cause_of(page(run.number))
        for words in (
            "Missing module.",
            "not contain the module apex",
            "Add the package that has apex to the environment",
            'href="/environments/"',
        ):
            assert words in cause, words

    def test_the_cascade_is_folded_and_grouped(self, who: Principal) -> None:
        cause = cause_of(page(failed(who).number))
        assert "1 other rank ended because of this or at the same time" in cause
        assert '<details class="th-cascade"><summary>' in cause, "closed until somebody asks"
        assert "<span>ended by TrainHub</span><span>0</span>" in cause

    def test_the_cause_is_shown_while_the_others_are_still_being_ended(self, who: Principal) -> None:
        alpha, run = running(who)
        alpha.log(run, LOGS[1], 0, TRACEBACK)
        alpha.tell(run, "running", alive(0), ended(1, 1))
        cause = cause_of(page(run.number))
        assert "the other ranks are being stopped" in cause
        assert "ValueError" in cause

    def test_where_no_rank_tells_an_error_of_its_own_the_doubt_is_said(self, who: Principal) -> None:
        alpha, run = running(who)
        for rank in (0, 1):
            size = 0 if rank else len(b"\x1b[32mepoch 1\x1b[0m\nepoch 2 loss=0.5\n")
            lost = b"Traceback (most recent call last):\n  File a\nRuntimeError: Connection reset by peer\n"
            alpha.log(run, LOGS[rank], size, lost)
        alpha.tell(run, "done", ended(0, 1), ended(1, 1))
        assert "Perhaps <strong>Rank 0 on alpha" in cause_of(page(run.number))

    def test_what_a_log_says_is_never_markup(self, who: Principal) -> None:
        assert "<b>batch</b>" not in page(failed(who).number)

    def test_a_run_that_never_fitted_says_why_without_a_log(self, who: Principal) -> None:
        run = queued(who, distribution=processes(500))
        node("alpha")
        run_actions.launch(run.pk)
        text = page(run.number)
        assert "no node has that many" in text
        assert "Ask for fewer" in text

    @pytest.mark.parametrize(
        ("number", "remedy"),
        [(Signals.SIGTERM, "other than TrainHub ended the process"), (Signals.SIGKILL, "lack of memory")],
    )
    def test_a_signal_is_explained_by_what_mostly_sends_it(
        self, who: Principal, number: Signals, remedy: str
    ) -> None:
        alpha, run = running(who)
        alpha.tell(run, "done", ended(0, None, signal=15, ended_by_us=True), ended(1, None, signal=number))
        text = page(run.number)
        assert f"killed by {number.name}" in text
        assert remedy in text

    def test_the_rank_that_failed_first_is_the_one_that_is_the_cause(self, who: Principal) -> None:
        run = failed(who)
        members = list(Member.objects.filter(attempt__run=run))
        assert getattr(first_failed(run, 1, members), "rank", None) == 1, "a stopped rank did not fail"
        assert (
            first_failed(run, 1, [member for member in members if member.state == MemberState.STOPPED])
            is None
        )
        Attempt.objects.filter(run=run).update(cause={"rank": 0})
        assert getattr(first_failed(run, 1, members), "rank", None) == 0, (
            "where the logs told another one, that one"
        )


class TestTabs:
    def test_logs_opens_at_the_rank_that_failed(self, who: Principal) -> None:
        assert f'data-log="{LOGS[1]}" data-socket' in page(failed(who).number, "logs/")

    def test_logs_shows_a_lane_per_rank_with_its_last_line(self, who: Principal) -> None:
        _, run = running(who)
        text = page(run.number)
        assert "Rank 0" in text
        assert "Rank 1" in text
        assert '<span class="lane-line th-cut">epoch 2 loss=0.5</span>' in text

    def test_logs_opens_the_log_that_the_address_names(self, who: Principal) -> None:
        _, run = running(who)
        assert f'data-log="{LOGS[1]}" data-socket' in page(run.number, query=f"?log={LOGS[1]}")

    def test_members_shows_exits_and_signals(self, who: Principal) -> None:
        text = page(failed(who).number, "members/")
        for words in ("SIGTERM", "Stopped", "Failed", LOGS[0]):
            assert words in text, words

    def test_plan_shows_what_ran_with_each_rank_s_own_words(self, who: Principal) -> None:
        _, run = running(who)
        text = page(run.number, "plan/")
        assert "What ran" in text
        assert "<code>--rank</code> <code>1</code>" in text
        assert "MASTER_PORT" in text
        assert "&lt;assigned at launch&gt;" in text, "what the preview had left open"

    def test_outputs_lists_files_to_download_and_register(self, who: Principal, tmp_path: Path) -> None:
        run = completed(who, tmp_path)
        text = page(run.number, "outputs/")
        assert f"/api/v1/artifacts/files/{run.experiment_id}/{run.pk}/artifacts/model.pt" in text
        assert "7 B" in text
        assert "Register" not in text, "a viewer may not register"
        owner = text_of(client_of(who.user), f"/runs/{run.number}/outputs/")
        assert f"?run={run.number}&amp;path=model.pt" in owner

    def test_events_tell_who_did_what(self, who: Principal) -> None:
        _, run = running(who)
        assert "Placed on alpha" in page(run.number, "events/")

    def test_spec_is_the_json_to_send_again(self, who: Principal) -> None:
        _, run = running(who)
        assert "&quot;process_count&quot;: 2" in page(run.number, "spec/")

    def test_htmx_gets_the_tab_alone_and_a_way_back_gets_the_page(self, who: Principal) -> None:
        _, run = running(who)
        client = client_of(make_viewer())
        part = text_of(client, f"/runs/{run.number}/members/", **HTMX)
        assert "<html" not in part
        back = {**HTMX, "HX-History-Restore-Request": "true"}
        assert "</html>" in text_of(client, f"/runs/{run.number}/members/", **back)


class TestGpus:
    def gpu_run(self, who: Principal) -> Run:
        node("alpha", gpus=4)
        return launched(who, distribution=processes(2), resources={"gpus_per_node": 2})

    def test_shows_the_runs_own_gpus_rank_by_rank_or_all_of_its_nodes(self, who: Principal) -> None:
        run = self.gpu_run(who)
        own, everything = page(run.number, "gpus/"), page(run.number, "gpus/", "?gpus=all")
        series = f"/api/v1/runs/{run.pk}/series/?attempt=1&amp;all_gpus=0"
        for words in (r"rank 0 \u00b7 alpha GPU", r"rank 1 \u00b7 alpha GPU", series):
            assert words in own, words
        assert "not used by this run" not in own
        assert everything.count("not used by this run") == 2
        assert "all_gpus=1" in everything

    def test_follows_the_nodes_while_it_is_not_over(self, who: Principal) -> None:
        run = self.gpu_run(who)
        assert 'data-nodes="alpha"' in page(run.number, "gpus/")
        Run.objects.filter(pk=run.pk).update(state=RunState.COMPLETED)
        assert 'data-nodes=""' in page(run.number, "gpus/")

    def test_of_a_run_without_gpus_its_machines_are_shown(self, who: Principal) -> None:
        _, run = running(who)
        text = page(run.number, "gpus/")
        assert "uses no GPUs" in text
        assert "Utilisation" not in text

    def test_before_it_has_nodes_it_says_what_will_be_here(self, who: Principal) -> None:
        assert "No nodes yet" in page(queued(who).number, "gpus/")
