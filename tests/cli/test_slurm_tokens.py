"""`trainhub slurm token`: what is read from standard input, what is sent, and what is never shown."""

from __future__ import annotations

import io
import json
import sys

import pytest

from tests.cli.command_line import CommandLine
from tests.sdk.scripted_hub import Reply, Request, ScriptedHub

TOKEN = "eyJhbGciOiJIUzI1NiJ9.eyJzdW4iOiJhZGEifQ.c2lnbmF0dXJl"
ANSWER = {
    "account": "ada",
    "expires_at": "2031-05-06T10:00:00Z",
    "stored_at": "2031-05-01T10:00:00Z",
}


@pytest.fixture
def hub(scripted: tuple[ScriptedHub, str]) -> ScriptedHub:
    """With the cluster hpc, of which it has the caller's token and not the observer's."""

    def reply(request: Request) -> Reply:
        if request.path == "/api/v1/clusters/":
            return Reply(body=json.dumps([{"name": "hpc"}]).encode())
        if request.path != "/api/v1/clusters/hpc/slurm-token/" and request.method != "PUT":
            return Reply(404, b'{"title": "Not found"}', {"Content-Type": "application/problem+json"})
        return Reply(204, b"") if request.method == "DELETE" else Reply(body=json.dumps(ANSWER).encode())

    scripted[0].replies = [reply]
    return scripted[0]


def give(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


@pytest.mark.parametrize(("words", "kind"), [([], "slurm-token"), (["--observer"], "observer-token")])
def test_a_token_is_read_from_standard_input(
    hub: ScriptedHub, trainhub: CommandLine, monkeypatch: pytest.MonkeyPatch, words: list[str], kind: str
) -> None:
    give(monkeypatch, f"SLURM_JWT={TOKEN}\n".encode())
    result = trainhub("slurm", "token", "set", "hpc", *words)
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("hpc has a token of ada until 06 May")
    assert TOKEN not in result.out
    (request,) = hub.requests
    assert (request.method, request.path) == ("PUT", f"/api/v1/clusters/hpc/{kind}/")
    assert json.loads(request.body) == {"token": f"SLURM_JWT={TOKEN}"}


@pytest.mark.parametrize("content", [b"", b"\n \n", b"\xff\xfe\x00\x01", b"a" * 70_000])
def test_what_is_no_token_is_not_sent(
    hub: ScriptedHub, trainhub: CommandLine, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    give(monkeypatch, content)
    result = trainhub("slurm", "token", "set", "hpc")
    assert result.code == 2
    assert "scontrol token lifespan=604800 | trainhub slurm token set CLUSTER" in result.err
    assert hub.requests == []


def test_it_is_no_argument(hub: ScriptedHub, trainhub: CommandLine) -> None:
    assert trainhub("slurm", "token", "set", "hpc", TOKEN).code == 2
    assert hub.requests == []


@pytest.mark.usefixtures("hub")
def test_show_says_whose_it_is_and_until_when(trainhub: CommandLine) -> None:
    out = trainhub("slurm", "token", "show", "hpc").out
    assert out.startswith("A token of ada, valid until 06 May")
    assert json.loads(trainhub("slurm", "token", "show", "hpc", "--json").out) == ANSWER


@pytest.mark.usefixtures("hub")
def test_remove_says_that_slurm_still_accepts_it(trainhub: CommandLine) -> None:
    result = trainhub("slurm", "token", "remove", "hpc")
    assert result.code == 0
    assert "Slurm itself accepts it until its end" in result.out


@pytest.mark.usefixtures("hub")
@pytest.mark.parametrize("action", ["show", "remove"])
def test_where_there_is_none_it_says_how_to_enter_one(trainhub: CommandLine, action: str) -> None:
    result = trainhub("slurm", "token", action, "hpc", "--observer")
    assert result.code == 2
    assert "The hub has no observer's token for hpc." in result.err
    assert "| trainhub slurm token set hpc --observer" in result.err


@pytest.mark.usefixtures("hub")
def test_a_cluster_that_does_not_exist_is_refused_by_the_hub(trainhub: CommandLine) -> None:
    result = trainhub("slurm", "token", "show", "nowhere")
    assert result.code == 2
    assert "trainhub slurm token set" not in result.err


@pytest.mark.usefixtures("hub")
def test_it_is_typed_without_echo_in_a_terminal(trainhub: CommandLine) -> None:
    result = trainhub.in_terminal(
        "slurm", "token", "set", "hpc", keys=[("Token, as scontrol prints it", f"{TOKEN}\r")]
    )
    assert result.code == 0
    assert TOKEN not in result.out
