"""Exit codes, and sentences on standard error."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command_line import PROJECT, CommandLine
from tests.hub import free_port
from tests.sdk.scripted_hub import Reply, ScriptedHub, problem
from trainhub_cli import exit_codes
from trainhub_sdk.profiles import LOGIN, Profile, load_profiles, save_profile

ROW = {
    "number": 12,
    "state": "Failed",
    "display_name": "a\x1b[31mname",
    "experiment": "e",
    "cluster": "c",
    "created_by": None,
    "created_at": "2026-01-01T00:00:00Z",
    "started_at": None,
    "finished_at": None,
}
PAGE = Reply(body=json.dumps({"results": [ROW], "next": None}).encode())


def test_the_code_of_several_runs_is_that_of_the_worst() -> None:
    assert exit_codes.of_states(["Completed", "Canceled", "Failed"]) == 1
    assert exit_codes.of_states(["Completed", "Canceled"]) == 130
    assert exit_codes.of_states(["Completed"]) == 0


def test_a_refusal_names_the_fields(scripted: tuple[ScriptedHub, str], trainhub: CommandLine) -> None:
    errors = [{"field": "filter", "message": "is no filter"}, {"field": "order", "message": "is none"}]
    scripted[0].replies = [problem(400, detail="filter: is no filter", errors=errors)]
    result = trainhub("ls", "--filter", "x")
    assert (result.code, result.out, result.err) == (2, "", "filter: is no filter\norder: is none\n")


def test_an_unknown_token_says_how_to_sign_in(
    scripted: tuple[ScriptedHub, str], trainhub: CommandLine
) -> None:
    scripted[0].replies = [problem(401, detail="This token has expired")]
    result = trainhub("nodes")
    assert (result.code, result.err) == (2, "This token has expired. Sign in again: trainhub login\n")


def test_nobody_is_there(trainhub: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainhub_sdk.api_connection.RETRY_S", 0)
    monkeypatch.setattr("trainhub_sdk.api_connection.ApiConnection.__init__.__defaults__", ("", "", 0))
    monkeypatch.setenv("TRAINHUB_URL", f"http://127.0.0.1:{free_port()}")
    result = trainhub("whoami")
    assert result.code == 3
    assert "cannot be reached: Connection refused. Check the address, and that it runs." in result.err


def test_no_profile(trainhub: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRAINHUB_URL")
    result = trainhub("ls")
    assert result.code == 2
    assert "trainhub login https://ADDRESS-OF-THE-HUB" in result.err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["lss"], "There is no command lss: is ls meant?"),
        (["frobnicate"], "There is no command frobnicate: see trainhub --help"),
        (["ls", "--filtr", "x"], "No such option"),
        (["logs", "1", "--rank", "x"], "--rank: write a number such as 0, or all."),
        (["logs", "1", "--grep", "("], "--grep: ( is no regular expression"),
        (["gpus", "--watch"], "--watch: it needs a terminal"),
        (["--profile", "nobody", "ls"], "There is no profile nobody"),
    ],
)
def test_what_is_wrong_with_a_command_line(
    trainhub: CommandLine, arguments: list[str], sentence: str
) -> None:
    result = trainhub(*arguments)
    assert (result.code, result.out) == (2, "")
    assert sentence in result.err


def test_rows_are_plain_or_json_lines(scripted: tuple[ScriptedHub, str], trainhub: CommandLine) -> None:
    scripted[0].replies = [PAGE]
    table = trainhub("ls").out.splitlines()
    assert table[0].split() == ["RUN", "STATE", "NAME", "EXPERIMENT", "CLUSTER", "BY", "SUBMITTED", "TIME"]
    assert "\x1b" not in table[1]
    assert [json.loads(line) for line in trainhub("runs", "--json").out.splitlines()] == [ROW]


def test_a_clock_that_is_off_does_not_change_how_long_a_run_has_run(
    scripted: tuple[ScriptedHub, str], trainhub: CommandLine
) -> None:
    row = {**ROW, "state": "Running", "started_at": "2026-01-01T00:00:00Z"}
    body = json.dumps({"results": [row], "next": None}).encode()
    scripted[0].replies = [Reply(body=body, headers={"Date": "Thu, 01 Jan 2026 00:01:30 GMT"})]
    assert trainhub("ls").out.splitlines()[1].endswith(" 1 m 30 s")


def test_a_bug_is_not_hidden(scripted: tuple[ScriptedHub, str], trainhub: CommandLine) -> None:
    scripted[0].replies = [Reply(body=b'{"results": [{}], "next": null}')]
    with pytest.raises(KeyError):
        trainhub("ls")


def test_a_reader_that_has_gone_ends_it_quietly(
    scripted: tuple[ScriptedHub, str], trainhub: CommandLine
) -> None:
    row = {**ROW, "display_name": "x" * 200}
    scripted[0].replies = [Reply(body=json.dumps({"results": [row] * 2000, "next": None}).encode())]
    argv = [sys.executable, "-m", "trainhub_cli", "ls", "--json", "-a"]
    process = subprocess.Popen(argv, cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    assert (process.wait(30), errors) == (exit_codes.BROKEN_PIPE, b"")


@pytest.mark.parametrize("line", ["{} --help", "{} ls --help", "{} completion bash"])
def test_a_reader_that_never_reads_is_no_failed_run(
    scripted: tuple[ScriptedHub, str], trainhub: CommandLine, line: str
) -> None:
    """`trainhub --help | true`: exit code 1 would say that a run has failed."""
    read, write = os.pipe()
    os.close(read)
    argv = line.format(f"{sys.executable} -m trainhub_cli").split()
    done = subprocess.run(argv, cwd=PROJECT, stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (exit_codes.BROKEN_PIPE, b"")


def test_closed_output_is_no_error(scripted: tuple[ScriptedHub, str], trainhub: CommandLine) -> None:
    scripted[0].replies = [PAGE]
    line = f"{sys.executable} -m trainhub_cli ls"
    for closed in (">&-", "2>&-"):
        assert subprocess.run(["sh", "-c", f"{line} {closed}"], cwd=PROJECT, check=False).returncode == 0


class TestProfiles:
    def test_a_token_is_read_and_never_an_argument(
        self,
        scripted: tuple[ScriptedHub, str],
        trainhub: CommandLine,
        monkeypatch: pytest.MonkeyPatch,
        tmp_path: Path,
    ) -> None:
        hub, url = scripted
        monkeypatch.delenv("TRAINHUB_URL")
        me = {
            "user": "ada",
            "workspace": "team",
            "scope": "submit",
            "role": "contributor",
            "display_name": "",
        }
        hub.replies = [Reply(body=json.dumps(me).encode())]
        (tmp_path / "token").write_text("s3cret\n")
        with (tmp_path / "token").open() as stdin:
            monkeypatch.setattr("sys.stdin", stdin)
            result = trainhub("login", url, "--profile", "lab", "--token-stdin")
        assert result.out == f"Signed in to {url} as ada in workspace team, scope submit.\n"
        assert hub.requests[-1].headers["authorization"] == "Bearer s3cret"
        monkeypatch.delenv("TRAINHUB_TOKEN")
        assert trainhub("profile", "ls").out.splitlines()[1].split() == ["*", "lab", url, "team"]
        assert trainhub("whoami").out.splitlines()[0] == "ada, contributor in workspace team, scope submit"
        forgotten = trainhub("logout").out
        assert "not made by trainhub login" in forgotten
        assert f"To revoke the token as well: {url}/settings/" in forgotten
        assert hub.requests[-1].method == "GET"
        assert trainhub("whoami").code == 2

    @pytest.mark.parametrize(
        ("answer", "sentence"),
        [
            (Reply(204, b""), "and its token is revoked"),
            (Reply(401), "and its token is revoked"),
            (problem(404, detail="There is no such page."), "There is no such page. To"),
        ],
    )
    def test_logout_revokes_the_token_that_login_has_made(
        self, scripted: tuple[ScriptedHub, str], trainhub: CommandLine, answer: Reply, sentence: str
    ) -> None:
        hub, url = scripted
        save_profile(Profile("lab", url, "s3cret", origin=LOGIN))
        hub.replies = [answer]
        result = trainhub("logout", "--profile", "lab")
        assert (result.code, sentence in result.out.replace("\n", " ")) == (0, True)
        (request,) = hub.requests
        assert (request.method, request.path) == ("DELETE", "/api/v1/me/token/")
        assert request.headers["authorization"] == "Bearer s3cret"
        assert "lab" not in load_profiles()

    def test_no_token(self, trainhub: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        (tmp_path / "token").write_text("\n")
        with (tmp_path / "token").open() as stdin:
            monkeypatch.setattr("sys.stdin", stdin)
            result = trainhub("login", "--token-stdin")
        assert result.code == 2
        assert "there is no token" in result.err


class TestCompletion:
    @pytest.fixture
    def complete(self, trainhub: CommandLine, monkeypatch: pytest.MonkeyPatch) -> object:
        def complete(words: str) -> list[str]:
            monkeypatch.setenv("_TRAINHUB_COMPLETE", "bash_complete")
            monkeypatch.setenv("COMP_WORDS", words)
            monkeypatch.setenv("COMP_CWORD", str(len(words.split(" ")) - 1))
            with pytest.raises(SystemExit):
                trainhub()
            return [line.split(",")[1] for line in trainhub._capsys.readouterr().out.split()]

        return complete

    def test_of_commands_and_runs_with_one_request_in_five_seconds(
        self, scripted: tuple[ScriptedHub, str], complete: object
    ) -> None:
        assert callable(complete)
        scripted[0].replies = [PAGE]
        assert complete("trainhub lo") == ["logs", "login", "logout"]
        assert complete("trainhub logs ") == ["12", "@last"]
        assert complete("trainhub show 1") == ["12"]
        assert len(scripted[0].requests) == 1

    def test_an_error_completes_nothing(self, scripted: tuple[ScriptedHub, str], complete: object) -> None:
        assert callable(complete)
        scripted[0].replies = [problem(401)]
        assert complete("trainhub logs ") == []
