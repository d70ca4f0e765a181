"""Operators read who did what, owners what happened in their workspace: on the page, as CSV, by the API."""

from __future__ import annotations

import ast
import csv
import io
from pathlib import Path

import pytest
from django.test import Client
from django.utils import timezone

from tests.hub import PROJECT
from tests.jobs.builders import queued
from tests.people import (
    PASSWORD,
    api_client,
    client_of,
    make_contributor,
    make_operator,
    make_owner,
    make_person,
    make_workspace,
    principal_of,
)
from workspaces import audit
from workspaces.audit_trail import views
from workspaces.audit_trail.entries import KINDS, WORDS
from workspaces.authentication import password_check
from workspaces.models import AuditEvent
from workspaces.states import Role

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("valkey")]
API = "/api/v1/audit/"


@pytest.fixture
def events() -> None:
    olivia, otto = make_owner(), make_person("otto", Role.OWNER, make_workspace("other"))
    audit.record(olivia, "run.cancel", "run 7", make_workspace())
    audit.record(olivia, "member.role_changed", "<carl>", make_workspace(), role="owner", is_new=True)
    audit.record(otto, "token.created", "=cmd()", make_workspace("other"))
    audit.record("node alpha", "node.joined", "alpha", cluster="local")


def subjects(client: Client, query: str = "") -> list[str]:
    return [row["subject"] for row in client.get(f"{API}{query}").json()["results"]]


class TestPage:
    def test_tells_in_words_and_escapes(self, events: None) -> None:
        text = client_of(make_operator()).get("/audit/").content.decode()
        assert "changed the role of <strong>&lt;carl&gt;</strong>" in text
        assert "is new: yes, role: owner" in text
        assert "joined as the node <strong>alpha</strong>" in text

    def test_an_owner_sees_the_workspace_only(self, events: None) -> None:
        text = client_of(make_owner()).get("/audit/").content.decode()
        assert "run 7" in text
        assert "=cmd()" not in text
        assert "alpha" not in text

    def test_a_wrong_day_is_named_and_the_page_is_there(self, events: None) -> None:
        answer = client_of(make_owner()).get("/audit/?from=yesterday")
        assert answer.status_code == 400
        assert "must be a day such as 2026-11-25" in answer.content.decode()

    def test_csv_has_everything_that_matches_and_no_formula(self, events: None) -> None:
        answer = client_of(make_operator()).get("/audit/csv/?kind=token")
        lines = list(csv.DictReader(io.StringIO(answer.content.decode())))
        assert [(line["actor"], line["workspace"], line["subject"]) for line in lines] == [
            ("otto", "other", "'=cmd()")
        ]
        assert client_of(make_operator()).get("/audit/csv/?kind=x").status_code == 400

    def test_csv_of_too_much_says_what_to_do(self, events: None, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(views, "MAX_CSV_EVENTS", 3)
        answer = client_of(make_operator()).get("/audit/csv/")
        assert (answer.status_code, answer.content.decode()) == (
            400,
            "from: more than 3 events match; choose fewer days\n",
        )
        assert client_of(make_operator()).get("/audit/csv/?kind=run").status_code == 200

    def test_csv_without_a_match_has_a_header(self) -> None:
        answer = client_of(make_operator()).get("/audit/csv/?actor=nobody")
        assert answer.content.startswith(b"at,actor,workspace")


class TestApi:
    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            ("?kind=run", ["run 7"]),
            ("?actor=otto", ["=cmd()"]),
            ("?text=CARL", ["<carl>"]),
            ("?from=2000-01-01&to=2000-01-02", []),
            (f"?from={timezone.now():%Y-%m-%d}&kind=node", ["alpha"]),
        ],
    )
    def test_filters(self, events: None, query: str, expected: list[str]) -> None:
        assert subjects(api_client(make_operator()), query) == expected

    def test_is_read_page_by_page(self) -> None:
        olivia = make_operator()
        for number in range(230):
            audit.record(olivia, "run.tag", f"run {number}")
        client, path, seen = api_client(olivia), API, 0
        while path:
            body = client.get(path).json()
            seen += len(body["results"])
            path = body["next"] and body["next"].partition("testserver")[2]
        assert seen == 230

    def test_a_wrong_filter_names_its_field(self, events: None) -> None:
        answer = api_client(make_owner()).get(f"{API}?kind=x")
        assert answer.status_code == 400
        assert answer.json()["errors"][0]["field"] == "kind"


class TestWhatIsRecorded:
    def test_submitting_a_run(self) -> None:
        run = queued(principal_of(make_contributor()), display_name="night")
        event = AuditEvent.objects.get(verb="run.submit")
        assert (event.actor, event.subject, event.detail) == ("carl", str(run), {"name": "night"})

    def test_signing_in_and_out(self) -> None:
        carl = make_contributor()
        carl.set_password(PASSWORD)
        carl.save()
        browser = Client(headers={"user-agent": "Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0"})
        for _ in range(2):
            browser.post("/sign-in/", {"username": "carl", "password": "wrong"})
        browser.post("/sign-in/", {"username": "carl", "password": PASSWORD})
        browser.post("/sign-out/")
        events = AuditEvent.objects.filter(verb__startswith="person.").order_by("pk")
        assert [(event.actor, event.verb) for event in events] == [
            ("somebody", "person.sign_in_failed"),
            ("carl", "person.signed_in"),
            ("carl", "person.signed_out"),
        ]
        assert events[0].detail == {"address": "127.0.0.1"}
        assert "Firefox" in events[1].detail["browser"]
        assert "wrong" not in str(list(events.values()))

    def test_of_many_failed_names_only_some(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(password_check, "MAX_RECORDED", 2)
        for name in ("ada", "bob", "cyd"):
            Client().post("/sign-in/", {"username": name, "password": "wrong"})
        failures = AuditEvent.objects.filter(verb="person.sign_in_failed").order_by("pk")
        assert list(failures.values_list("subject", flat=True)) == ["ada", "bob"]


def recorded_verbs() -> set[str]:
    """Every verb that a call of `audit.record` in the product names."""
    verbs: set[str] = set()
    for path in Path(PROJECT).glob("[a-z]*/**/*.py"):
        if path.parts[len(Path(PROJECT).parts)] in ("tests", "bench") or "migrations" in path.parts:
            continue
        for call in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(call, ast.Call)
                and isinstance(call.func, ast.Attribute)
                and ast.unparse(call.func) == "audit.record"
            ):
                verbs |= {
                    node.value
                    for node in ast.walk(call.args[1])
                    if isinstance(node, ast.Constant) and isinstance(node.value, str)
                }
    return {verb for verb in verbs if not verb.endswith(".")}


def test_every_verb_has_words_and_a_kind() -> None:
    verbs = recorded_verbs()
    assert len(verbs) > 50
    assert verbs <= WORDS.keys()
    assert {verb.partition(".")[0].partition("_")[0] for verb in WORDS} <= {*KINDS, "audit"}
