"""People, machines and one object of each kind in the workspace `default`; what fills the parameters of a
route."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.test import Client
from django.utils import timezone

from clusters.enrolment import node_tokens
from clusters.models import Alert, Gpu, JoinToken, Node, NodeReservation
from jobs.models import Artifact, EnvironmentBuild, Experiment, Run, RunTag
from jobs.tokens import attempt_token as job_token
from jobs.wizard import drafts
from registry.aliases import set_alias
from registry.model_metadata import set_tag
from registry.registration import register
from tests.attacks.access.accounts import accounts_of
from tests.attacks.access.checkpoints import checkpoints_of
from tests.attacks.access.images import ordered_image
from tests.attacks.access.named_objects import named_objects_of
from tests.attacks.access.partition import partition_of
from tests.environments.locks import locked
from tests.jobs.builders import running
from tests.people import (
    make_contributor,
    make_person,
    make_stranger,
    make_viewer,
    make_workspace,
    principal_of,
    token_of,
)
from tests.registry.builders import run_with
from tracking.models import LoggedModel, SavedView
from trainhub_launch.log_names import PACKAGES_FILE
from trainhub_launch.spec_reader import read_spec
from workspaces.access import Principal
from workspaces.mail import invitation_links
from workspaces.models import (
    ApiToken,
    BrowserSession,
    Channel,
    Invitation,
    InvitationLink,
    Membership,
    Passkey,
    User,
)
from workspaces.states import Role

Values = dict[str, Any]
DONE, DELETED = 41, 40
"""Numbers of a completed run and of a deleted one."""


@dataclass(frozen=True)
class World:
    """`values` fill the parameters of routes by name, `special` those of single routes."""

    people: dict[str, User]
    tokens: dict[str, str]
    values: Values
    special: dict[str, Values]

    def fill(self, path: str) -> str:
        """The path with a real object for each of its parameters."""
        values = {**self.values, **self.special.get(path, {})}
        return re.sub(r"[<{](?:\w+:)?(\w+)[>}]", lambda match: str(values[match[1]]), path).replace(
            "**", str(values["**"])
        )


def build() -> World:
    """Make it in an empty database. What belongs to one person is the contributor's."""
    people = _people()
    who = principal_of(people["contributor"])
    played, active = running(who)
    played.log(active, PACKAGES_FILE, 0, b'{"packages": []}')
    done, deleted, old = _runs(who, active.spec)
    tokens = _tokens(people, active, played.node.name)
    artifact = Artifact.objects.get(run=done)
    draft = drafts.start(who, read_spec(active.spec))
    Gpu.objects.create(node=played.node, uuid="GPU-1", index=0, name="H200")
    logged = LoggedModel.objects.create(
        experiment=done.experiment, run=done, name="net", status="LOGGED_MODEL_READY", tags={"note": "1"}
    )
    values = {
        "number": DONE,
        "run": done.pk,
        "run_id": done.pk,
        "tab": "plan",
        "uuid": "GPU-1",
        "version": 1,
        "alias": "champion",
        "draft_id": draft.pk,
        "step": "source",
        "path": "model.pt",
        "key": "note",
        "sha256": artifact.sha256,
        "model_id": logged.pk,
        "folder": f"{done.experiment_id}/{done.pk}/artifacts",
        "upload": "0" * 32,
        "ticket": "unknown",
        "scope": "own",
        "kind": "source",
        "**": "anything",
        "name": "birds",
        "pk": 0,
        "experiment": done.experiment_id,
        "deleted_experiment": old.pk,
        "checkpoint": 1,
    }
    special = _special(who, (active, done, deleted), old)
    special |= checkpoints_of(active, artifact)
    tokens["order"], of_image = ordered_image(who, active, played.node)
    return World(people, tokens, values, _Prefixes({**special, **of_image}))


def _people() -> dict[str, User]:
    """The outsider owns another workspace; the stranger is a member of none."""
    operator = make_person("oscar", Role.OWNER)
    operator.is_operator = True
    operator.save(update_fields=["is_operator"])
    return {
        "stranger": make_stranger(),
        "outsider": make_person("mallory", Role.OWNER, make_workspace("other")),
        "viewer": make_viewer(),
        "contributor": make_contributor(),
        "owner": make_person("olivia", Role.OWNER),
        "operator": operator,
    }


def _tokens(people: dict[str, User], run: Run, node: str) -> dict[str, str]:
    """Of everybody who asks the API, also of programs that are no people."""
    other = make_workspace("other")
    tokens = {name: token_of(user, other if name == "outsider" else None) for name, user in people.items()}
    return {
        **tokens,
        "job": job_token(run.pk, 1),
        "node": node_tokens.enrol_node("local", node)[1],
        "wrong": "tht_" + "x" * 43,
    }


def _runs(who: Principal, spec: Values) -> tuple[Run, Run, Experiment]:
    """A completed run with a registered model, a deleted run, a deleted experiment."""
    done, deleted = run_with("model.pt", number=DONE), run_with("old.pt", number=DELETED)
    Run.objects.filter(pk=done.pk).update(state="Completed", created_by=who.user, spec=spec)
    Run.objects.filter(pk=deleted.pk).update(
        state="Completed", created_by=who.user, deleted_at=timezone.now()
    )
    version = register(who.workspace, "birds", done, "model.pt", who.user)
    for thing in (version, version.model):
        set_tag(thing, "note", "1")
    set_alias(version.model, "champion", version.number, who.user)
    old = Experiment.objects.create(workspace=who.workspace, name="old", deleted_at=timezone.now())
    return done, deleted, old


def _special(who: Principal, runs: tuple[Run, Run, Run], old: Experiment) -> dict[str, Values]:
    """Parameters that stand for something else on these routes."""
    _, done, _ = runs
    channel = Channel.objects.create(
        workspace=who.workspace,
        user=who.user,
        kind="webhook",
        name="mine",
        target="http://192.0.2.1/",
        events=["run.failed"],
    )
    view = SavedView.objects.create(workspace=who.workspace, user=who.user, name="mine")
    hour = timezone.now() + timedelta(hours=1)
    invitation = JoinToken.objects.create(cluster="local", digest="0" * 64, expires_at=hour)
    member = Membership.objects.get(user__username="vera")
    token = ApiToken.objects.filter(user=who.user).first()
    assert token is not None
    of_run = f"{done.experiment_id}/{done.pk}/artifacts/model.pt"
    RunTag.objects.create(run=done, experiment=done.experiment, key="note", value="1")
    other = make_workspace("other")
    to_me = Invitation.objects.create(workspace=other, user=who.user, role=Role.VIEWER)
    invited = make_person("ines")
    to_her = Invitation.objects.create(workspace=who.workspace, user=invited, role=Role.VIEWER)
    alert = Alert.objects.create(
        key="node_clock:1", kind="node_clock", node=Node.objects.get(), severity="warning", state="firing"
    )
    by_prefix: dict[str, Values] = {
        "/invitations/": {"pk": to_me.pk},
        "/api/v1/invitations/": {"pk": to_me.pk},
        "/settings/members/invitations/": {"pk": to_her.pk},
        "/settings/factors/": {"pk": Passkey.objects.create(user=who.user, name="laptop").pk},
        "/settings/invitations/": {"pk": _open_link(who).pk},
        "/settings/tokens/": {"pk": token.pk},
        "/settings/sessions/": {"pk": _session_of(who.user).pk},
        "/settings/notifications/": {"pk": channel.pk},
        "/settings/members/": {"pk": member.pk},
        "/clusters/invitations/": {"pk": invitation.pk},
        "/experiments/": {"pk": old.pk},
        "/runs/views/": {"pk": view.pk},
        "/api/v1/notification-channels/": {"pk": channel.pk},
        "/alerts/": {"pk": alert.pk},
        "/api/v1/alerts/": {"pk": alert.pk},
    }
    objects = {**accounts_of(who), **named_objects_of(who), **_window(hour), **partition_of(who)}
    return _Prefixes({**by_prefix, **objects, **_named(who, runs, of_run)})


def _environment(who: Principal) -> dict[str, Values]:
    """A curated environment's page is everybody's; the others are of the workspace's own."""
    made = locked(who)
    build = EnvironmentBuild.objects.create(
        workspace=who.workspace, node=Node.objects.get(), name="mine", version="1", own_version=made
    )
    values = {"name": "mine", "number": made.number, "version": made.number, "build": build.pk}
    values |= {"file": "requirements.txt", "sha256": "0" * 64}
    paths = [
        f"/environments/<str:name>/{part}/" for part in ("clone", "delete", "edit", "versions", "builds")
    ]
    paths += ["/api/v1/environments/", "/api/v1/builds/", "/api/v1/node/builds/", "/ws/builds/"]
    return {"/environments/": {"name": "system"}, **dict.fromkeys(paths, values)}


def _window(begin: datetime) -> dict[str, Values]:
    """A time for which a node is kept free."""
    window = NodeReservation.objects.create(
        node=Node.objects.get(), begins_at=begin, ends_at=begin + timedelta(hours=1), created_by="oscar"
    )
    values = {"name": "local", "pk": window.pk}
    return {f"{path}clusters/<slug:name>/windows/": values for path in ("/", "/api/v1/")}


def _open_link(who: Principal) -> InvitationLink:
    """An invitation by link to the workspace."""
    return invitation_links.create_link("test", who.workspace, Role.VIEWER)[0]


def _session_of(user: User) -> BrowserSession:
    """A browser in which the person is signed in."""
    Client().force_login(user)
    return BrowserSession.objects.get(user=user)


def _named(who: Principal, runs: tuple[Run, Run, Run], of_run: str) -> dict[str, Values]:
    """Parameters that are names, paths and numbers."""
    active, _, deleted = runs
    return {
        "/workspaces/": {"pk": who.workspace.pk},
        "/people/": {"pk": User.objects.get(username="vera").pk},
        "/sign-in/": {"text": "thp_unknown"},
        "/api/v1/workspaces/": {"slug": who.workspace.slug, "username": "vera"},
        "/api/2.0/mlflow/workspaces/": {"name": who.workspace.slug},
        "/api/v1/workspaces/<slug:slug>/invitations/": {"slug": who.workspace.slug, "pk": _open_link(who).pk},
        "/ajax-api/2.0/mlflow-artifacts/artifacts/models/": {"path": "birds/1/model.pt"},
        "/ajax-api/2.0/mlflow-artifacts/artifacts/{": {"path": of_run},
        "/clusters/": {"name": "local"},
        "/nodes/": {"name": "alpha"},
        **_environment(who),
        "/runs/new/example/": {"name": "hello"},
        "/api/v1/clusters/": {"name": "local"},
        "/api/v1/nodes/": {"name": "alpha"},
        "/ws/nodes/": {"name": "alpha"},
        "/api/v1/node/wheel/": {"name": "none.whl"},
        "/api/v1/node/packages/": {"name": "numpy", "sha256": "0" * 64, "filename": "a.whl"},
        "/runs/<int:number>/packages/": {"number": active.number},
        "/runs/menu/": {"name": "columns"},
        "/models/": {"name": "birds", "number": 1},
        "/api/v1/models/": {"name": "birds", "number": 1},
        "/api/2.0/mlflow-artifacts/artifacts/models/": {"path": "birds/1/model.pt"},
        "/api/2.0/mlflow-artifacts/artifacts/{": {"path": of_run},
        "/api/v1/artifacts/": {"path": of_run},
        "/sdk/": {"name": "none.whl"},
        "/static/": {"**": "css/tokens.css"},
        "/docs/<": {"slug": "nodes"},
        "/docs/images/": {"name": "run-light-wide.png"},
        "/api/v1/artifacts/zip/": {"path": of_run.removesuffix("/model.pt")},
        "/api/v1/snapshots/{": {"sha256": active.spec["source"]["id"]},
        "/api/v1/runs/{run}/logs/": {"name": "70_driver_log.txt"},
        **{f"/runs/<int:number>/{verb}/": {"number": DELETED} for verb in ("restore", "purge")},
        **{f"/api/v1/runs/<str:run>/{verb}/": {"run": deleted.pk} for verb in ("restore", "purge")},
    }


class _Prefixes(dict[str, Values]):
    """Looked up by the longest key with which a path begins."""

    def get(self, path: str, default: Any = None) -> Any:
        keys = [key for key in self if path.startswith(key)]
        return self[max(keys, key=len)] if keys else default
