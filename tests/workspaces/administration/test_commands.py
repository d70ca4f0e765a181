"""`manage.py person` and `manage.py workspace`: the way back in, and the same refusals as on the pages."""

from __future__ import annotations

import io
import re

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from jobs.models import Run
from tests.jobs.builders import queued
from tests.people import (
    PASSWORD,
    make_contributor,
    make_operator,
    make_person,
    make_workspace,
    principal_of,
)
from workspaces.models import AuditEvent, User, Workspace

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("valkey")]


def output(*args: str, **options: object) -> str:
    out = io.StringIO()
    call_command(*args, stdout=out, stderr=io.StringIO(), **options)
    return out.getvalue()


def refusal(*args: str, **options: object) -> str:
    with pytest.raises(CommandError) as error:
        call_command(*args, **options)
    assert error.value.returncode == 2
    return str(error.value)


class TestPerson:
    def test_a_lost_password_of_the_first_owner_has_a_way_back(self) -> None:
        make_person("admin")
        match = re.fullmatch(r"https?://[^/]+(/sign-in/link/\S+/)\n", output("person", "link", "admin"))
        assert match is not None
        browser = Client()
        browser.post(match[1], {"new_password1": PASSWORD, "new_password2": PASSWORD})
        assert browser.login(username="admin", password=PASSWORD)
        assert AuditEvent.objects.get(verb="password.link_created").actor == "command line"

    def test_lists_everybody(self) -> None:
        make_operator()
        User.objects.filter(pk=make_person("gone").pk).update(is_active=False)
        assert output("person", "list").splitlines() == [
            "gone\tdeactivated\tno workspace",
            "olivia\tactive, operator\towner of default",
        ]

    def test_makes_an_operator(self) -> None:
        output("person", "operator", str(make_contributor()))
        assert User.objects.get(username="carl").is_operator
        assert "carl is the only operator" in refusal("person", "operator", "carl", off=True)

    def test_deactivates_with_runs_and_activates(self) -> None:
        make_operator()
        run = queued(principal_of(make_contributor()))
        output("person", "deactivate", "carl", cancel_runs=True)
        assert Run.objects.get(pk=run.pk).state == "Canceled"
        assert not User.objects.get(username="carl").is_active
        output("person", "activate", "carl")
        assert User.objects.get(username="carl").is_active

    def test_an_unknown_name_is_refused(self) -> None:
        assert refusal("person", "link", "nobody").startswith("name: there is no user nobody")


class TestWorkspace:
    def test_makes_renames_archives_and_restores(self) -> None:
        make_workspace()
        make_person("otto")
        assert output("workspace", "create", "Vision research", owner="otto") == "vision-research\n"
        output("workspace", "rename", "vision-research", "Speech")
        output("workspace", "archive", "vision-research")
        assert output("workspace", "list").splitlines() == [
            "default\tDefault\t0 members",
            "vision-research\tSpeech\t1 members\tarchived",
        ]
        output("workspace", "restore", "vision-research")
        assert Workspace.objects.get(slug="vision-research").archived_at is None

    def test_refusals_name_the_field(self) -> None:
        assert refusal("workspace", "create", "A", owner="nobody").startswith("owner: there is no user")
        assert refusal("workspace", "archive", "none").startswith("slug: there is no workspace none")
