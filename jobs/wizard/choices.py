"""The options that the wizard offers at present: environments, experiments, examples and files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from clusters.models import Cluster, Node
from clusters.visibility import clusters_of
from environments import curated
from environments.catalog import SYSTEM
from environments.images.display import image_sentence
from environments.images.image_lock import read_image_lock
from environments.states import IMAGE_KINDS
from jobs.models import Experiment, Run, Snapshot
from jobs.sources import examples
from jobs.sources.examples import Example
from jobs.sources.first_use import FirstUse, first_uses, own_first_uses
from jobs.sources.git_sources import fetched
from jobs.sources.own_environments import OwnRow, own_environments, packages_of
from jobs.states import RunKind
from trainhub_launch.errors import SpecError
from trainhub_launch.frameworks import FRAMEWORKS
from trainhub_launch.spec import ExampleSource, GitSource, Source
from workspaces.access import Principal
from workspaces.models import Workspace

# The page contains every suggestion as an option of a datalist.
MAX_FILES = 500
# Packages of an environment that its choice names.
MAX_PACKAGES = 12


@dataclass(frozen=True)
class EnvironmentChoice:
    """An environment to choose. `is_rare`: one of possibly many interpreters, which the page folds away
    unless it is chosen. `first_use`: None if nothing is installed. `state`: of the newest version of the
    workspace's own; `is_usable`: whether it has a locked one."""

    value: str
    title: str
    sentence: str
    is_rare: bool = False
    first_use: FirstUse | None = None
    state: str = ""
    is_usable: bool = True


@dataclass(frozen=True)
class GalleryCard:
    """An example to start from. `command`: what it runs. `first_use`: None if it needs no packages, so that
    it starts at once. `preparation`: what nodes need before, "" if it runs as it is."""

    example: Example
    framework: str
    command: str
    first_use: FirstUse | None
    preparation: str


@dataclass(frozen=True)
class Gallery:
    """The examples that run as they are, and those for which nobody has prepared a node yet."""

    ready: tuple[GalleryCard, ...]
    unprepared: tuple[GalleryCard, ...]


@dataclass(frozen=True)
class SourceFacts:
    """A summary of the chosen source for the source step. `is_missing`: the source does not exist any
    more."""

    title: str
    sentence: str
    files: tuple[str, ...]
    size_bytes: int | None = None
    is_missing: bool = False

    @property
    def suggestions(self) -> tuple[str, ...]:
        """Returns at most MAX_FILES files to suggest as script, Python files and files of upper folders
        first."""
        return tuple(
            sorted(self.files, key=lambda path: (not path.endswith(".py"), path.count("/"), path))[:MAX_FILES]
        )


def environment_choices(workspace: Workspace) -> tuple[EnvironmentChoice, ...]:
    """Returns the workspace's own environments, the curated ones, the node's default Python, and the
    interpreters that the nodes of the workspace's clusters report."""
    costs, own_costs = first_uses(workspace), own_first_uses(workspace)
    return (
        *(_own_choice(row, own_costs) for row in own_environments(workspace)),
        *(
            EnvironmentChoice(item.name, item.name, curated.describe(item), first_use=costs[item.name])
            for item in curated.CURATED
        ),
        EnvironmentChoice("system", "The node's own Python", "Nothing is installed; starts at once."),
        *_interpreters(clusters_of(workspace)),
    )


def _own_choice(row: OwnRow, costs: Mapping[tuple[str, str], FirstUse]) -> EnvironmentChoice:
    """Returns the version that runs get as a choice, or one that cannot be chosen if none is locked."""
    name, newest, locked = row.environment.name, row.newest, row.usable
    if locked is None:
        sentence = newest.failure or "It can be chosen once it is locked."
        title = f"{name}, version {newest.number}"
        return EnvironmentChoice(
            f"{name}:{newest.number}", title, sentence, state=newest.state, is_usable=False
        )
    later = "" if newest.is_locked else f" Version {newest.number} is not locked: {newest.state}."
    later += f" {row.notice}" if row.notice else ""
    sentence = (
        image_sentence(read_image_lock(locked.lock))
        if locked.kind in IMAGE_KINDS
        else f"Python {locked.python} with locked packages: {', '.join(packages_of(locked)[:MAX_PACKAGES])}."
    )
    return EnvironmentChoice(
        f"{name}:{locked.number}",
        f"{name}, version {locked.number}",
        sentence + later,
        first_use=costs.get((name, str(locked.number)), FirstUse()),
        state=locked.state,
    )


def gallery(workspace: Workspace) -> Gallery:
    """Returns the built-in examples as cards for the start page and the source step."""
    costs = first_uses(workspace)
    cards = [_card(example, costs) for example in examples.examples()]
    return Gallery(
        tuple(card for card in cards if not card.preparation),
        tuple(card for card in cards if card.preparation),
    )


def _card(example: Example, costs: Mapping[str, FirstUse]) -> GalleryCard:
    environment = example.spec.get("environment", {}).get("name", SYSTEM)
    use = costs.get(environment)
    # A node that has used the environment was prepared.
    preparation = "" if use is not None and use.nodes else curated.preparation(environment)
    command = example.spec.get("command") or [example.spec["script"], *example.spec.get("arguments", ())]
    return GalleryCard(example, FRAMEWORKS[example.framework].label, " ".join(command), use, preparation)


def experiment_choices(workspace: Workspace) -> list[str]:
    experiments = Experiment.objects.filter(workspace=workspace, deleted_at=None)
    # These are suggestions only: the field also accepts the name of another experiment.
    return list(experiments.order_by("-pk").values_list("name", flat=True)[:100])


def last_runs(workspace: Workspace, limit: int = 8) -> list[Run]:
    """Returns the latest listed jobs, which can be cloned."""
    runs = (
        Run.objects.for_workspace(workspace)
        .listed()
        .filter(kind=RunKind.JOB)
        .select_related("experiment", "created_by")
    )
    return list(runs.order_by("-number")[:limit])


def source_facts(source: Source | None, who: Principal) -> SourceFacts | None:
    if source is None:
        return None
    if isinstance(source, ExampleSource):
        return _example_facts(source.name)
    if isinstance(source, GitSource):
        return _repository_facts(source, who)
    snapshot = Snapshot.objects.filter(workspace=who.workspace, sha256=source.id).first()
    if snapshot is None:
        return SourceFacts(
            "Code that is no longer kept", "Upload it again, or choose another source.", (), is_missing=True
        )
    count = len(snapshot.paths)
    return SourceFacts(
        f"Snapshot {snapshot.sha256[:8]}",
        f"{count} file{'' if count == 1 else 's'}, frozen when it was uploaded.",
        snapshot.paths,
        snapshot.size_bytes,
    )


def _repository_facts(source: GitSource, who: Principal) -> SourceFacts:
    commit = fetched(source, who.workspace)
    if commit is None:
        return SourceFacts(source.url, "Its files are not here; fetch them.", (), is_missing=True)
    branch = f" of {commit.branch}" if commit.branch else ""
    count = len(commit.snapshot.paths)
    return SourceFacts(
        source.url,
        f"Commit {commit.commit[:10]}{branch}, {count} file{'' if count == 1 else 's'}"
        f"{f' of the folder {source.path}' if source.path else ''}.",
        commit.snapshot.paths,
        commit.snapshot.size_bytes,
    )


def likely_script(paths: Iterable[str]) -> str:
    """Returns the path that most probably is the training script, or "" if there is no clear candidate."""
    scripts = sorted(path for path in paths if path.endswith(".py"))
    for name in ("train.py", "main.py", "run.py"):
        if name in scripts:
            return name
    top = [path for path in scripts if "/" not in path]
    return top[0] if len(top) == 1 else scripts[0] if len(scripts) == 1 else ""


def _example_facts(name: str) -> SourceFacts:
    try:
        example = examples.example(name)
    except SpecError as error:
        return SourceFacts(f"Example {name!r}", error.message, (), is_missing=True)
    return SourceFacts(f"Example: {example.title}", example.sentence, examples.paths(name))


def _interpreters(open_clusters: Iterable[Cluster]) -> tuple[EnvironmentChoice, ...]:
    nodes_with: dict[tuple[str, str], list[str]] = {}
    for node in Node.objects.filter(cluster__in=open_clusters, revoked_at=None).order_by("name"):
        for interpreter in node.interpreters:
            nodes_with.setdefault((interpreter["version"], interpreter["path"]), []).append(node.name)
    return tuple(
        EnvironmentChoice(
            f"system:{path}", f"Python {version}", f"{path} on {', '.join(names[:4])}", is_rare=True
        )
        for (version, path), names in sorted(nodes_with.items(), key=lambda item: _newest_first(item[0][0]))
    )


def _newest_first(version: str) -> tuple[int, ...]:
    # As text, 3.9 would sort before 3.10.
    return tuple(-int(part) for part in version.split(".") if part.isdecimal())
