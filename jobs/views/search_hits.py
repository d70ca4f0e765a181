"""What the search field and the command palette find: runs, machines, experiments, environments, pages
and actions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import quote

from django.db.models import Q
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse

from clusters.models import Gpu
from clusters.visibility import clusters_of, visible_nodes
from environments.curated import matching
from jobs.display.navigation import navigation_entries
from jobs.models import Experiment, Run
from jobs.sources.own_environments import own_environments
from workspaces.access import Principal, WorkspaceRequest
from workspaces.states import Role

MAX_OF_A_KIND = 6


@dataclass(frozen=True)
class Hit:
    """`kind`: the heading below which the search page lists it. `command`: what the page itself does instead
    of opening `url` (static/js/palette.js)."""

    icon: str
    title: str
    detail: str
    url: str
    kind: str
    command: str = ""


@dataclass(frozen=True)
class Action:
    """Something that a person does on the page with the name `route`, or by `command`. `words`: other words
    for it."""

    title: str
    words: str
    route: str = ""
    anchor: str = ""
    command: str = ""
    role: Role = Role.VIEWER
    for_operators: bool = False

    def is_for(self, who: Principal) -> bool:
        return who.may(self.role) and (who.user.is_operator or not self.for_operators)


ACTIONS = (
    Action("New run", "submit job start training", "wizard-start", role=Role.CONTRIBUTOR),
    Action("Add a machine", "node join agent", "add-machine", for_operators=True),
    Action("Add a cluster", "create provider", "add-cluster", for_operators=True),
    Action(
        "New environment",
        "create packages requirements pip container image docker",
        "environment-new",
        role=Role.CONTRIBUTOR,
    ),
    Action("Upload a model", "register version", "model-upload", role=Role.CONTRIBUTOR),
    Action("Compare runs", "difference", "compare"),
    Action("Switch theme", "dark light colour", command="theme"),
    Action("Create an API token", "settings key access", "settings", "#tokens"),
    Action("Manage members", "settings people roles", "settings", "#members", role=Role.OWNER),
    Action("People", "accounts users operators deactivate reset password", "people", for_operators=True),
    Action("Audit trail", "log history who did what", "audit", role=Role.OWNER),
    Action("Workspaces", "create rename archive team", "workspaces", for_operators=True),
    Action("Secrets", "settings tokens passwords keys credentials", "secrets"),
    Action("Notifications", "settings channels webhook mail", "channels"),
    Action("Change the password", "settings account", "password"),
    Action("Deleted runs", "restore undo trash", "deleted-runs"),
    Action("Documentation", "docs help manual guide", "documentation"),
    Action("REST API", "schema reference documentation", "api"),
    Action("Sign out", "log out leave", command="sign-out"),
)

Source = Callable[[str, WorkspaceRequest], list[Hit]]
# Sources of higher floors, which add them when their URLs are loaded.
SOURCES: list[Source] = []


def hits_for(text: str, request: WorkspaceRequest) -> list[Hit]:
    """Returns what the workspace of the request has under this text: at most `MAX_OF_A_KIND` of each kind."""
    sources = (_runs, _nodes, _gpus, _clusters, _experiments, _environments, *SOURCES)
    return [*(hit for source in sources for hit in source(text, request)), *pages(text, request)]


def pages(text: str, request: HttpRequest) -> list[Hit]:
    """Returns the entries of the navigation that contain the text."""
    return [
        Hit(entry.icon, entry.word, "page", entry.url, "Pages")
        for entry in navigation_entries(request)
        if text.lower() in entry.word.lower()
    ]


def actions(text: str, who: Principal) -> list[Hit]:
    """Returns what this person may do and the text names, in the order of ACTIONS."""
    words = text.lower().split()
    return [
        Hit("bolt", action.title, "action", url, "Actions", action.command)
        for action in ACTIONS
        if action.is_for(who)
        and all(word in f"{action.title} {action.words}".lower() for word in words)
        and ((url := _address(action)) or action.command)
    ]


def without_actions(hits: list[Hit]) -> list[Hit]:
    """Returns the hits without pages that are actions too: the actions have them, for those who may."""
    addresses = {_address(action) for action in ACTIONS if not action.anchor}
    return [hit for hit in hits if hit.url not in addresses]


def _address(action: Action) -> str:
    """Returns "" for an action without a page, or whose page this installation lacks."""
    try:
        return reverse(action.route) + action.anchor if action.route else ""
    except NoReverseMatch:
        return ""


def _runs(text: str, request: WorkspaceRequest) -> list[Hit]:
    """Returns the newest runs, and the way to all if there are more."""
    workspace = request.principal.workspace
    runs = (
        Run.objects.for_workspace(workspace)
        .matching(workspace, text=text)
        .select_related("experiment")
        .defer("preview")[: MAX_OF_A_KIND + 1]
    )
    hits = [
        Hit(
            "queue-list",
            run.display_name or str(run),
            f"run {run.number} · {run.experiment.name} · {run.state}",
            reverse("run", args=[run.number]),
            "Runs",
        )
        for run in runs
    ]
    if len(hits) <= MAX_OF_A_KIND:
        return hits
    everything = Hit("arrow-right", "All matching runs", "", f"{reverse('runs')}?q={quote(text)}", "Runs")
    return [*hits[:MAX_OF_A_KIND], everything]


def _nodes(text: str, request: WorkspaceRequest) -> list[Hit]:
    nodes = visible_nodes(request.principal.workspace).filter(name__icontains=text)[:MAX_OF_A_KIND]
    return [
        Hit(
            "server-stack",
            node.name,
            f"node of {node.cluster.name}",
            reverse("node", args=[node.name]),
            "Machines",
        )
        for node in nodes
    ]


def _gpus(text: str, request: WorkspaceRequest) -> list[Hit]:
    """Finds GPUs by UUID, model and number ("GPU 3")."""
    match = Q(uuid__icontains=text) | Q(name__icontains=text)
    number = text.lower().removeprefix("gpu").strip()
    if number.isdecimal() and len(number) < 5 and text.lower().startswith("gpu"):
        match |= Q(index=int(number))
    nodes = visible_nodes(request.principal.workspace).order_by()
    gpus = (
        Gpu.objects.filter(match, node__in=nodes)
        .select_related("node")
        .order_by("node__name", "index")[:MAX_OF_A_KIND]
    )
    return [
        Hit(
            "cpu-chip",
            f"GPU {gpu.index} of {gpu.node.name}",
            gpu.name,
            reverse("gpu", args=[gpu.uuid]),
            "GPUs",
        )
        for gpu in gpus
    ]


def _clusters(text: str, request: WorkspaceRequest) -> list[Hit]:
    clusters = clusters_of(request.principal.workspace).filter(name__icontains=text)[:MAX_OF_A_KIND]
    return [
        Hit("server-stack", cluster.name, "cluster", reverse("cluster", args=[cluster.name]), "Clusters")
        for cluster in clusters
    ]


def _experiments(text: str, request: WorkspaceRequest) -> list[Hit]:
    experiments = Experiment.objects.filter(
        workspace=request.principal.workspace, deleted_at=None, name__icontains=text
    ).order_by("name")[:MAX_OF_A_KIND]
    return [
        Hit(
            "beaker",
            item.name,
            "experiment",
            f"{reverse('runs')}?experiment={quote(item.name)}",
            "Experiments",
        )
        for item in experiments
    ]


def _environments(text: str, request: WorkspaceRequest) -> list[Hit]:
    """Finds the workspace's own environments and the curated ones by name and package ("torch 2.13")."""
    own = [
        Hit(
            "archive-box",
            row.environment.name,
            f"environment with {', '.join(row.packages[:MAX_OF_A_KIND])}",
            reverse("environment", args=[row.environment.name]),
            "Environments",
        )
        for row in own_environments(request.principal.workspace, text)
    ]
    curated = [
        Hit(
            "archive-box",
            item.name,
            f"environment with {', '.join(item.requirements)}",
            reverse("environment", args=[item.name]),
            "Environments",
        )
        for item in matching(text)
    ]
    return [*own, *curated][:MAX_OF_A_KIND]
