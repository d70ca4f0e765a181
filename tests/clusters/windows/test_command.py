"""`manage.py window`: the same checks and sentences as the page and the API."""

from __future__ import annotations

import io

import pytest
from django.core.management import call_command

from clusters.models import NodeReservation
from tests.jobs.builders import node
from tests.people import make_operator, make_workspace

pytestmark = pytest.mark.django_db
FROM, TO = "2096-12-24 18:00", "2096-12-24T21:00:00+01:00"
SPAN = ("--from", FROM, "--to", TO)


def window(*args: str) -> list[str]:
    out = io.StringIO()
    call_command("window", *args, stdout=out)
    return out.getvalue().splitlines()


@pytest.fixture(autouse=True)
def nodes(db: None) -> None:
    make_operator()
    make_workspace("vision")
    node("alpha")
    node("beta")


def test_adds_lists_and_ends() -> None:
    first, second = window("add", "local", "alpha", "beta", *SPAN, "--note", "new fans")
    pk, name, span, *rest = first.split("\t")
    assert (name, span, rest) == (
        "alpha",
        "2096-12-24 18:00 to 2096-12-24 20:00 UTC",
        ["maintenance", "new fans"],
    )
    assert window("list", "local") == [first, second]
    assert window("end", "local", pk) == ["The window of alpha was ended."]
    assert window("list", "local") == [second]
    (reserved,) = window("add", "local", "alpha", *SPAN, "--workspace", "vision")
    assert reserved.endswith("for vision")


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (
            ("add", "nowhere", "alpha", *SPAN),
            "name: there is no cluster 'nowhere'; see manage.py cluster list",
        ),
        (("add", "local", "gamma", *SPAN), "nodes: 'gamma' is no node of local"),
        (("add", "local", "alpha", "--from", TO, "--to", FROM), "ends_at: must be after begins_at"),
        (
            ("add", "local", "alpha", "--from", "soon", "--to", TO),
            "begins_at: 'soon' is no time; write it as",
        ),
        (
            ("add", "local", "alpha", "--from", "2096-13-01 10:00", "--to", TO),
            "begins_at: '2096-13-01 10:00'",
        ),
        (("add", "local", "alpha", *SPAN, "--workspace", "speech"), "workspace: 'speech' is no workspace"),
        (("end", "local", "77"), "id: there is no window 77; see manage.py window list local"),
    ],
)
def test_refuses_by_field(args: tuple[str, ...], sentence: str) -> None:
    err = io.StringIO()
    with pytest.raises(SystemExit) as exited:
        call_command("window", *args, stderr=err)
    assert exited.value.code == 2
    assert sentence in err.getvalue()
    assert not NodeReservation.objects.exists()
