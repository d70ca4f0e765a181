"""The command line and the SDK on a real hub: submit, follow, download, register."""

from __future__ import annotations

import json
import os
import re
import uuid
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.cli.command_line import CommandLine
from tests.hub import Hub
from trainhub import __version__ as hub_version
from trainhub_sdk import Client, RunSpec
from trainhub_sdk import __version__ as sdk_version
from trainhub_sdk.errors import HubRefused, RunFailed

pytestmark = pytest.mark.slow
SCRIPT = """
import pathlib, sys
print("arguments", *sys.argv[1:])
for number in range(300):
    print("line", number)
pathlib.Path("outputs").mkdir(exist_ok=True)
pathlib.Path("outputs/model.pt").write_bytes(b"w" * 1000)
"""
SLOW_SCRIPT = """
import time
for number in range(600):
    print("line", number, flush=True)
    time.sleep(0.2)
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "train.py").write_text(SCRIPT)
    (folder / "slow.py").write_text(SLOW_SCRIPT)
    (folder / "fails.py").write_text("print('before')\nraise SystemExit(3)\n")
    return folder


@pytest.fixture
def trainhub(
    hub: Hub, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[CommandLine]:
    trainhub = CommandLine(capsys, monkeypatch, tmp_path, hub.url, hub.owner_token())
    monkeypatch.chdir(tmp_path)
    yield trainhub
    trainhub("stop", "@last")


def number_of(text: str) -> str:
    match = re.search(r"Run (\d+): http", text)
    assert match is not None, text
    return match[1]


def test_a_run_from_its_submission_to_its_model(trainhub: CommandLine, source: Path, tmp_path: Path) -> None:
    name = f"model-of-{tmp_path.name}"
    line = [
        "submit",
        "--folder",
        str(source),
        "--name",
        "first",
        "-w",
        "--",
        "python",
        "train.py",
        "--epochs",
        "3",
    ]
    watched = trainhub(*line)
    assert watched.code == 0, watched.err
    assert watched.out.splitlines()[0] == "arguments --epochs 3"
    assert watched.out.splitlines()[-1] == "line 299"
    run = number_of(watched.err)
    assert f"Run {run} is Completed" in watched.err
    assert trainhub("logs", run, "-n", "2").out == "line 298\nline 299\n"
    assert (
        trainhub("logs", "@last", "--rank", "all", "--grep", "29[0-1]$").out == "[0] line 290\n[0] line 291\n"
    )
    assert trainhub("logs", run, "--rank", "5").code == 2
    (row,) = [json.loads(line) for line in trainhub("files", "ls", run, "--json").out.splitlines()]
    assert (row["path"], row["size_bytes"]) == ("model.pt", 1000)
    assert trainhub("files", "get", run, "model.pt", "-o", "here/m.pt").out == "here/m.pt\n"
    assert Path("here/m.pt").read_bytes() == b"w" * 1000
    assert (
        trainhub("models", "register", row["url"].split("/")[4][:12], "model.pt", name).out == f"{name}:1\n"
    )
    assert trainhub("models", "get", f"{name}:1").out == f"{name}/model.pt\n"
    assert Path(name, "model.pt").read_bytes() == b"w" * 1000
    missing = trainhub("models", "get", f"{name}@best")
    assert (missing.code, missing.err) == (2, f"{name} has no version best: it has 1.\n")
    shown = trainhub("show", run).out
    assert f"Run {run}: first, Completed" in shown
    assert "train.py --epochs 3" in shown


def test_a_run_that_fails_says_why_and_what_to_do(trainhub: CommandLine, source: Path) -> None:
    watched = trainhub("submit", "--folder", str(source), "-w", "--", "python", "fails.py")
    assert watched.code == 1
    assert watched.out == "before\n"
    assert "exited with code 3" in watched.err
    assert "What to do: " in watched.err
    assert trainhub("wait", "@last").code == 1
    clone = trainhub("clone", "@last", "--set", "script=train.py", "--json")
    row = json.loads(clone.out)
    assert (row["spec"]["script"], row["cloned_from"] is not None) == ("train.py", True)
    assert trainhub("wait", str(row["number"])).code == 0


def test_what_the_hub_refuses_starts_nothing(trainhub: CommandLine, source: Path) -> None:
    before = trainhub("ls", "-n", "1").out
    line = ["--folder", str(source), "--gpus", "999", "--", "python", "train.py"]
    refused = trainhub("submit", *line)
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.startswith("resources.gpus_per_node: ")
    assert trainhub("submit", "--folder", str(source), "--dry-run", "--", "python", "train.py").code == 0
    assert trainhub("ls", "-n", "1").out == before


def test_the_versions_of_hub_and_program_are_shown(trainhub: CommandLine) -> None:
    assert trainhub("whoami").out.splitlines()[-1] == f"hub {hub_version}, trainhub {sdk_version}"
    versions = trainhub("--version").out.splitlines()
    url = trainhub.environment["TRAINHUB_URL"]
    assert versions == [f"trainhub {sdk_version}", f"hub {hub_version} at {url}"]


def test_every_list_is_a_table_and_json_lines(trainhub: CommandLine) -> None:
    for line in ("ls", "nodes", "clusters", "gpus", "env ls", "data ls", "models ls", "usage --by month"):
        assert trainhub(*line.split()).out.strip()
        rows = trainhub(*line.split(), "--json")
        assert rows.code == 0
        assert all(isinstance(json.loads(row), dict) for row in rows.out.splitlines())


class TestTerminal:
    def test_colours_and_a_narrow_screen(self, trainhub: CommandLine, source: Path) -> None:
        name = "a name that has no room on a screen that is as narrow as this one"
        trainhub("submit", "--folder", str(source), "--name", name, "--", "python", "train.py")
        trainhub("wait", "@last")
        wide = trainhub.in_terminal("ls", "-n", "1", columns=150)
        assert "\x1b[32mCompleted\x1b[0m" in wide.out
        assert name in wide.out
        narrow = trainhub.in_terminal("ls", "-n", "1", columns=50, environment={"NO_COLOR": "1"})
        assert "\x1b" not in narrow.out
        assert max(len(line) for line in narrow.out.splitlines()) <= 50
        assert "Completed  a name that" in narrow.out

    def test_ctrl_c_detaches_and_a_second_one_stops_the_run(
        self, trainhub: CommandLine, source: Path
    ) -> None:
        line = ["submit", "--folder", str(source), "-w", "--", "python", "slow.py"]
        detached = trainhub.in_terminal(*line, keys=[("line 1", "\x03")])
        run = number_of(detached.out)
        assert detached.code == 130
        assert f"trainhub logs -f {run}" in detached.out
        assert json.loads(trainhub("show", run, "--json").out)["state"] == "Running"
        keys = [("line 2", "\x03"), ("stops it", "\x03")]
        stopped = trainhub.in_terminal("logs", "-f", run, "-n", "3", keys=keys)
        assert (stopped.code, f"Run {run} is asked to stop" in stopped.out) == (130, True)
        assert trainhub("wait", run).code == 130

    def test_a_live_screen_ends_with_ctrl_c(self, trainhub: CommandLine) -> None:
        live = trainhub.in_terminal("ls", "-w", keys=[("Ctrl-C ends", "\x03")])
        assert live.code == 0
        assert "\x1b[?1049h" in live.out
        assert "\x1b[?1049l" in live.out


def test_an_upload_that_was_stopped_goes_on(
    trainhub: CommandLine, hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"birds-{uuid.uuid4().hex[:8]}"
    folder = tmp_path / "photos"
    (folder / "2024").mkdir(parents=True)
    (folder / "2024" / "large.bin").write_bytes(os.urandom(20 * 2**20))
    (folder / "owl.jpg").write_bytes(b"owl")
    with monkeypatch.context() as patched:

        def stop(_length: int) -> None:
            raise KeyboardInterrupt

        patched.setattr("trainhub_cli.commands.catalog.show_progress", lambda _title: nullcontext(stop))
        assert trainhub("data", "upload", name, "photos").code == 130
    sent: list[int] = []
    with monkeypatch.context() as patched:
        patched.setattr(
            "trainhub_cli.commands.catalog.show_progress", lambda _title: nullcontext(sent.append)
        )
        done = trainhub("data", "upload", name, "photos")
    assert (done.code, done.out) == (0, f"{name}:1, 2 files, 21.0 MB\n"), done.err
    assert sum(sent) == 12 * 2**20 + 3, "the first piece was there"
    client = Client(hub.url, hub.owner_token())
    # The same files again are a version of their own, for which nothing is sent.
    version = client.upload_dataset(name, folder)
    assert (version.version, version.files, version.bytes) == (2, 2, 20 * 2**20 + 3)


def test_the_sdk_does_the_same(hub: Hub, source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    client = Client(hub.url, hub.owner_token())
    spec = RunSpec(script="train.py", arguments=["--epochs", 3], experiment="of-the-sdk")
    run = client.submit(spec, source, idempotency_key="the-sdk-does-the-same")
    again = client.submit(spec, source, idempotency_key="the-sdk-does-the-same")
    assert (again.id, client.run(run.id[:8]).id) == (run.id, run.id)
    run.wait(show_output=True)
    assert capsys.readouterr().out.startswith("arguments --epochs 3\nline 0\n")
    assert "".join(run.logs(last_lines=1)) == "line 299\n"
    assert [one.id for one in client.runs(experiment="of-the-sdk")] == [run.id]
    assert [(one.name, one.run_count) for one in client.experiments("of-the-sdk")] == [("of-the-sdk", 1)]
    failed = client.submit({"script": "fails.py"}, source)
    with pytest.raises(RunFailed, match="What to do:"):
        failed.wait()
    with pytest.raises(HubRefused, match="script"):
        client.submit(RunSpec(script="none.py"), source)


def test_retention_rules_are_previewed_set_and_canceled(trainhub: CommandLine) -> None:
    assert trainhub("retention", "show").out.count("kept for ever") == 4
    preview = trainhub("retention", "preview", "--logs", "90")
    assert "Set now, stricter rules hold from" in preview.err
    assert "cancel" not in preview.err
    assert trainhub("retention", "show").out.count("kept for ever") == 4

    set_now = trainhub("retention", "set", "--logs", "90", "--outputs", "30", "--only-unsuccessful", "--yes")
    assert "removed 90 days after the end of failed and canceled runs" in set_now.out
    assert "`trainhub retention cancel` takes it back" in set_now.err
    assert trainhub("retention", "cancel").code == 0
    assert "removed" not in trainhub("retention", "show").out

    none_waits = trainhub("retention", "cancel")
    assert (none_waits.code, none_waits.err) == (
        2,
        "rules: there is no stricter rule that waits, so there is nothing to cancel\n",
    )
    assert (
        "logs.days: must be a whole number of days from 1" in trainhub("retention", "set", "--logs", "0").err
    )
    assert "soon is no rule" in trainhub("retention", "set", "--logs", "soon").err
