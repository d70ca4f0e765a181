"""`manage.py person` and `manage.py workspace`: the way back in, and the same refusals as on the pages."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from clusters.models import Cluster
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
from workspaces import tokens
from workspaces.models import AuditEvent, User, Workspace
from workspaces.states import Role

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("valkey")]


def output(*args: str, **options: Any) -> str:
    out = io.StringIO()
    call_command(*args, stdout=out, stderr=io.StringIO(), **options)
    return out.getvalue()


def refusal(*args: str, **options: Any) -> str:
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


class TestOneOfSeveralWorkspaces:
    @pytest.fixture(autouse=True)
    def second_workspace(self) -> None:
        make_person("carl", Role.CONTRIBUTOR, make_workspace("other"))
        make_contributor()

    def test_a_token_is_made_in_the_one_that_is_named(self) -> None:
        who = tokens.authenticate(output("token", "create", "carl", workspace="default").strip())
        assert who is not None
        assert who.workspace.slug == "default"

    def test_a_run_is_submitted_there(self) -> None:
        Cluster.objects.create(name="local")
        output("submit", "examples/hello/example.json", user="carl", workspace="default")
        assert Run.objects.get().workspace.slug == "default"

    @pytest.mark.parametrize("slug", ["third", "none"])
    def test_not_where_the_person_is_no_member(self, slug: str) -> None:
        make_workspace("third")
        assert refusal("token", "create", "carl", workspace=slug).startswith(
            "workspace: carl is not a member"
        )
        errors = io.StringIO()
        with pytest.raises(SystemExit):
            call_command("submit", "examples/hello/example.json", user="carl", workspace=slug, stderr=errors)
        assert errors.getvalue().startswith(f"workspace: carl is not a member of {slug}")


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
