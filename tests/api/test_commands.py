from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import call_command

from clusters.enrolment.join import join
from clusters.enrolment.node_tokens import enrol_node, node_for_token
from clusters.models import Node
from jobs.logs.log_follower import LogFollower
from jobs.models import Run
from jobs.scheduling import run_actions
from tests.hub import PROJECT
from tests.jobs import builders
from tests.jobs.builders import Played, alive, ended
from tests.people import make_owner, make_stranger, make_viewer
from workspaces.access import Principal

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("valkey", "node")]


@pytest.fixture(autouse=True)
def olivia() -> None:
    make_owner()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "train.py").write_text("print('hello')\n")
    return tmp_path


def written(folder: Path, spec: Any) -> str:
    path = folder / "spec.json"
    path.write_text(spec if isinstance(spec, str) else json.dumps(spec))
    return str(path)


LOCAL = {"source": {"type": "local", "path": "./source"}, "script": "train.py"}


def submitted(path: str, user: str = "olivia") -> str:
    """What was said on stderr."""
    said = io.StringIO()
    call_command("submit", path, user=user, stderr=said)
    return said.getvalue()


def refused(path: str, user: str = "olivia") -> str:
    """What was said on stderr before leaving with the code of a refusal."""
    said = io.StringIO()
    with pytest.raises(SystemExit) as left:
        call_command("submit", path, user=user, stderr=said)
    assert left.value.code == 2
    return said.getvalue()


class TestSubmit:
    def test_takes_a_folder_beside_the_file(self, folder: Path) -> None:
        said = submitted(written(folder, LOCAL))
        run = Run.objects.get()
        assert (run.spec["source"]["type"], run.spec["script"]) == ("snapshot", "train.py")
        assert said.startswith(f"run 1 ({run.pk}): http")

    def test_takes_an_example_as_it_lies_there(self) -> None:
        submitted("examples/hello/example.json")
        assert Run.objects.get().display_name == "hello"

    def test_writes_the_warnings_of_the_preview(self, folder: Path) -> None:
        said = submitted(written(folder, {"source": LOCAL["source"], "command": ["python", "train.py", "|"]}))
        assert "no shell reads the command: '|' is passed on as an argument" in said

    @pytest.mark.parametrize(
        ("spec", "said"),
        [
            ("{", "spec: "),
            ("[]", "spec: must be a JSON object"),
            ("[" * 100_000, "spec: is nested too deeply"),
            ('{"arguments": [NaN]}', "spec: "),
            (
                {**LOCAL, "source": {"type": "local", "path": "a\0b"}},
                "source.path: must not contain a NUL character",
            ),
            ({**LOCAL, "script": ""}, "script: name the script to run"),
            ({**LOCAL, "script": "nowhere.py"}, "script: "),
            (
                {**LOCAL, "environment": {"name": "Conda"}},
                "environment.name: no environment is called 'Conda'",
            ),
            ({**LOCAL, "resources": {"gpus_per_node": 4}}, "resources.gpus_per_node: "),
            ({**LOCAL, "source": {"type": "local"}}, "source.path: name the folder that holds the script"),
            ({**LOCAL, "source": {"type": "local", "path": "./nowhere"}}, "source.path: "),
            (
                {**LOCAL, "source": {"type": "local", "path": ".", "ref": "x"}},
                "source.ref: is not a known field",
            ),
        ],
    )
    def test_refuses_with_field_and_remedy_and_exit_code_2(self, folder: Path, spec: Any, said: str) -> None:
        heard = refused(written(folder, spec))
        assert any(line.startswith(said) for line in heard.splitlines()), heard
        assert not Run.objects.exists()

    def test_says_everything_that_is_wrong(self, folder: Path) -> None:
        heard = refused(written(folder, {**LOCAL, "script": "nowhere.py", "environment": {"name": "Conda"}}))
        assert {line.partition(":")[0] for line in heard.splitlines()} >= {"script", "environment.name"}

    def test_an_unreadable_file_is_named(self, tmp_path: Path) -> None:
        path = tmp_path / "none.json"
        assert refused(str(path)) == f"spec: {path} cannot be read: No such file or directory\n"

    @pytest.mark.parametrize(
        ("make", "said"),
        [(make_stranger, "user: stan is not a user here"), (make_viewer, "user: This needs")],
    )
    def test_only_a_contributor_may(self, folder: Path, make: Callable[[], Any], said: str) -> None:
        assert refused(written(folder, LOCAL), str(make())).startswith(said)


class Stage:
    """A run whose node acts whenever the follower tells of a new state, so that no thread is needed."""

    def __init__(self, node: Node, run: Run, **acts: Callable[[Played, Run], object]) -> None:
        self.out = io.StringIO()
        self.notes: list[str] = []
        self._acts = acts
        self._played, self._run = Played(node), run
        self.ended = LogFollower(run.pk, out=self.out.write, note=self._note).follow_to_end()

    def _note(self, line: str) -> None:
        self.notes.append(line)
        act = self._acts.get(line.partition(":")[0])
        if act:
            act(self._played, self._run)


def start(played: Played, run: Run) -> None:
    run_actions.launch(run.pk)
    played.claim(run)


class TestFollow:
    def test_shows_one_process_as_it_is(self, who: Principal, node: Node) -> None:
        def work(played: Played, run: Run) -> None:
            played.tell(run, "running", alive(0))

        def speak(played: Played, run: Run) -> None:
            played.log(run, "70_driver_log.txt", 0, b"epoch 1\nno newline \xff")
            played.tell(run, "done", ended(0), logs={"70_driver_log.txt": 20})

        stage = Stage(node, builders.queued(who), Queued=start, Preparing=work, Running=speak)
        assert stage.out.getvalue() == "epoch 1\nno newline �"
        assert stage.notes == ["Queued", "Preparing", "Running", "Completed: All ranks finished."]

    def test_tells_several_ranks_apart(self, who: Principal, node: Node) -> None:
        logs = {"70_driver_log_0.txt": 9, "70_driver_log_1.txt": 4}

        def work(played: Played, run: Run) -> None:
            played.tell(run, "running", alive(0), alive(1))
            played.log(run, "70_driver_log_0.txt", 0, b"one\ntwo\n+")
            played.log(run, "70_driver_log_1.txt", 0, b"uno\n")
            played.tell(run, "done", ended(0), ended(1, code=3), logs=logs)

        run = builders.queued(who, distribution=builders.processes(2))
        stage = Stage(node, run, Queued=start, Preparing=work)
        assert stage.out.getvalue() == "[0] one\n[0] two\n[1] uno\n[0] +\n"
        assert stage.ended.state == "Failed"
        assert stage.notes[-1] == "Failed: Rank 1 exited with code 3 on alpha."

    def test_ends_with_a_canceled_run(self, who: Principal, node: Node) -> None:
        run = builders.queued(who)
        stage = Stage(node, run, Queued=lambda _, run: run_actions.cancel(run, who.user))
        assert (stage.ended.state, stage.out.getvalue()) == ("Canceled", "")


class TestNodeToken:
    def test_prints_a_join_token_and_the_command_to_run_there(self) -> None:
        out = io.StringIO()
        call_command("node", "token", "beta", cluster="gpus", stdout=out, stderr=io.StringIO())
        token, *rest = out.getvalue().splitlines()
        assert f"trainhub-node join {settings.API_URL} --token {token}" in rest[-1]
        joined = join(token, "", "box.lan")
        assert (joined.node.name, joined.node.cluster.name) == ("beta", "gpus")
        assert node_for_token(joined.token) == joined.node

    def test_lists_nodes_with_their_state(self) -> None:
        enrol_node("gpus", "beta")
        out = io.StringIO()
        call_command("node", "list", stdout=out)
        assert out.getvalue().splitlines()[0].split() == ["gpus", "beta", "new"]

    def test_revokes_a_node_and_says_who_is_not_there(self) -> None:
        _, token = enrol_node("gpus", "beta")
        call_command("node", "revoke", "beta", stdout=io.StringIO())
        assert node_for_token(token) is None
        heard = io.StringIO()
        with pytest.raises(SystemExit):
            call_command("node", "revoke", "gamma", stderr=heard)
        assert heard.getvalue().startswith("name: there is no node 'gamma'")

    def test_refuses_a_name_in_a_sentence(self) -> None:
        heard = io.StringIO()
        with pytest.raises(SystemExit) as left:
            call_command("node", "token", "no spaces", stderr=heard)
        assert (left.value.code, heard.getvalue().startswith("name: ")) == (2, True)


HELLO = {"source": {"type": "local", "path": "./source"}, "script": "train.py"}


@pytest.mark.slow
class TestOnARealHub:
    """The command as a person runs it, against real processes."""

    @pytest.mark.parametrize(
        ("script", "code", "said"),
        [
            ("print('hello')", 0, "Completed: All ranks finished."),
            ("print('hello'); raise SystemExit(3)", 1, "Failed: Rank 0 exited with code 3"),
            (
                f"import os; print('hello', flush=True); os.kill(os.getpid(), {int(signal.SIGKILL)})",
                1,
                "Failed: Rank 0 was killed",
            ),
        ],
    )
    def test_exits_with_the_runs_outcome(
        self, hub: Any, folder: Path, script: str, code: int, said: str
    ) -> None:
        (folder / "source" / "train.py").write_text(script)
        done = hub.manage("submit", written(folder, HELLO), "--wait", check=False)
        assert (done.returncode, done.stdout) == (code, "hello\n"), done.stderr
        assert said in done.stderr

    def test_of_a_canceled_run_exits_as_if_interrupted(self, hub: Any, folder: Path) -> None:
        (folder / "source" / "train.py").write_text(
            "import time; print('working', flush=True); time.sleep(600)"
        )
        command = [sys.executable, "manage.py", "submit", written(folder, HELLO), "--wait"]
        process = subprocess.Popen(
            command, cwd=PROJECT, env=hub.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "working\n"
        with hub.client() as client:
            # The newest: other tests may have left theirs running on this hub.
            run = client.get("/api/v1/runs/?state=active").json()["results"][0]
            assert client.post(f"/api/v1/runs/{run['id']}/cancel/").status_code == 202
        _, said = process.communicate(timeout=60)
        assert process.returncode == 130
        assert "Canceled: Canceled by admin." in said
