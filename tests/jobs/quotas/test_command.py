"""`manage.py quota`: the same checks and sentences as the page and the API."""

from __future__ import annotations

import io

import pytest
from django.core.management import call_command

from clusters.models import DiskUse, Quota
from tests.people import make_contributor, make_operator
from workspaces.models import AuditEvent

pytestmark = pytest.mark.django_db


def quota(*args: str) -> str:
    out = io.StringIO()
    call_command("quota", *args, stdout=out)
    return out.getvalue()


def refused(*args: str) -> str:
    err = io.StringIO()
    with pytest.raises(SystemExit) as exited:
        call_command("quota", *args, stderr=err)
    assert exited.value.code == 2
    return err.getvalue()


@pytest.fixture(autouse=True)
def people(db: None) -> None:
    make_operator()
    make_contributor()


def test_sets_lists_and_clears() -> None:
    assert quota("set", "default", "--gpus", "4", "--disk-gib", "0.5") == "The quota was set.\n"
    quota("set", "default", "--each-person", "--gpu-hours", "2.5")
    quota("set", "default", "--person", "carl", "--waiting-runs", "3")
    assert quota("list").splitlines() == [
        "default\tthe whole workspace\tGPUs: 0 of 4\tdisk: 0 B of 0.5 GiB",
        "default\teach person\tGPU-hours this month: 2.5",
        "default\tcarl\twaiting runs: 0 of 3",
    ]
    assert quota("list", "default") == quota("list")
    assert AuditEvent.objects.filter(verb="quota.changed", actor="olivia").count() == 3
    assert quota("clear", "default") == "The quota was removed.\n"
    assert Quota.objects.count() == 2


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (
            ("set", "nowhere", "--gpus", "1"),
            "slug: there is no workspace 'nowhere'; see manage.py workspace list",
        ),
        (("set", "default"), "limits: name at least one of --gpus, --gpu-hours, --waiting-runs, --disk-gib"),
        (("set", "default", "--gpus", "-1"), "gpus: must be between 0 and 1000000"),
        (("set", "default", "--disk-gib", "nan"), "disk_gib: must be between 0 and 1000000"),
        (
            ("set", "default", "--person", "nobody", "--gpus", "1"),
            "person: there is no 'nobody' in the workspace",
        ),
        (("list", "nowhere"), "slug: there is no workspace"),
        (("--user", "carl", "set", "default", "--gpus", "1"), "user: there is no operator 'carl'"),
    ],
)
def test_refuses_by_field(args: tuple[str, ...], sentence: str) -> None:
    assert sentence in refused(*args)
    assert not Quota.objects.exists()


def test_says_what_is_above_a_lowered_quota() -> None:
    quota("set", "default", "--disk-gib", "1")
    DiskUse.objects.filter(person=None).update(size_bytes=2**30)
    err = io.StringIO()
    call_command("quota", "set", "default", "--disk-gib", "0.5", stderr=err, stdout=io.StringIO())
    assert err.getvalue().startswith("Workspace default stores 1 GiB, more than 512 MiB; nothing is stopped")
