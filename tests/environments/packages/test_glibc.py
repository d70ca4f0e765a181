"""A wheel that needs a newer glibc than a node has."""

from __future__ import annotations

from clusters.models import Node
from environments.kinds.all_kinds import kind_of
from environments.models import EnvironmentVersion, LockedFile
from environments.packages.glibc_needs import glibc_capabilities
from jobs.builds.build_requests import build_refusal
from jobs.builds.build_targets import BuildTarget
from jobs.queues.environment_needs import EnvironmentNeeds
from jobs.scheduling.run_preview import preview
from tests.environments.locks import locked
from tests.jobs.builders import launched, node, spec
from trainhub_launch.scheduler.capabilities import unmet_capabilities
from workspaces.access import Principal

NEED = "glibc:2.39:newlib 3.1"


def with_wheels(who: Principal, *filenames: str) -> EnvironmentVersion:
    version = locked(who)
    for number, filename in enumerate(filenames):
        project = filename.split("-")[0]
        LockedFile.objects.create(
            version=version,
            project=project,
            filename=filename,
            url="https://x.test",
            sha256=f"{number:064x}",
            is_preferred=not any(name.startswith(project) for name in filenames[:number]),
        )
    return version


def report(name: str, *capabilities: str) -> Node:
    made = node(name)
    Node.objects.filter(pk=made.pk).update(capabilities=" ".join(["secrets", "builds", *capabilities]))
    made.refresh_from_db()
    return made


def test_the_newest_glibc_that_a_package_cannot_do_without_counts(who: Principal) -> None:
    version = with_wheels(
        who,
        "pure-1.0-py3-none-any.whl",
        "both-1.0-cp311-cp311-manylinux_2_39_x86_64.whl",
        "both-1.0-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
        "some-2.0-cp311-cp311-manylinux_2_28_x86_64.whl",
        "newlib-3.1-cp311-cp311-manylinux_2_39_x86_64.whl",
    )
    assert glibc_capabilities([version.pk]) == {version.pk: frozenset({NEED})}
    # What only the build of others needs is not installed for runs.
    version.files.filter(project="newlib").update(is_for_build=True)
    assert glibc_capabilities([version.pk]) == {version.pk: frozenset({"glibc:2.28:some 2.0"})}
    assert unmet_capabilities({NEED}, {"glibc:2.36"}) == [NEED]
    assert unmet_capabilities({NEED}, {"glibc:2.4"}) == [NEED]
    assert unmet_capabilities({NEED}, {"glibc:2.40"}) == unmet_capabilities({NEED}, {"conda"}) == []


def test_a_file_of_a_channel_with_a_strange_name_keeps_no_queue_from_being_read(who: Principal) -> None:
    version = with_wheels(who, "manylinux_2_28.conda", "odd.conda", "lib-x-1.0-h1_0.conda")
    version.files.update(is_conda=True)
    assert glibc_capabilities([version.pk]) == {}
    version.files.filter(filename="odd.conda").update(project="odd", glibc="2.34")
    assert glibc_capabilities([version.pk]) == {version.pk: frozenset({"glibc:2.34:odd"})}
    version.files.filter(filename="lib-x-1.0-h1_0.conda").update(project="lib-x", glibc="2.40")
    assert glibc_capabilities([version.pk]) == {version.pk: frozenset({"glibc:2.40:lib-x 1.0"})}


def test_a_run_and_a_build_are_kept_from_a_node_with_an_older_one(who: Principal) -> None:
    version = with_wheels(who, "newlib-3.1-cp311-cp311-manylinux_2_39_x86_64.whl")
    alpha = report("alpha", "glibc:2.36")
    wish = spec(who, environment={"name": "mine"})

    (error,) = [item for item in preview(wish, who).errors if "glibc" in item.message]
    assert "newlib 3.1 needs glibc 2.39 or newer, and alpha has 2.36: too few other nodes" in error.message
    refusal = build_refusal(alpha, BuildTarget(kind_of(version).node_spec(version), version))
    assert "alpha has glibc 2.36, and newlib 3.1 needs 2.39 or newer" in refusal

    report("beta", "glibc:2.39")
    (hint,) = [item for item in preview(wish, who).findings if "glibc" in item.message]
    assert (hint.level, "placed on other nodes" in hint.message) == ("hint", True)
    run = launched(who, environment={"name": "mine"})
    assert EnvironmentNeeds([run]).capabilities(run) == {NEED}
    assert [part.node.name for part in run.attempts.get().parts.all()] == ["beta"]


def test_a_wheel_that_a_node_has_built_needs_a_glibc_as_new_as_its_builders(who: Principal) -> None:
    version = with_wheels(who, "built-1.0-cp311-cp311-linux_x86_64.whl", "pure-1.0-py3-none-any.whl")
    assert glibc_capabilities([version.pk]) == {}
    version.files.filter(project="built").update(glibc="2.36")
    need = "glibc:2.36:built 1.0 (built on a node with 2.36)"
    assert glibc_capabilities([version.pk]) == {version.pk: frozenset({need})}
    assert unmet_capabilities({need}, {"glibc:2.35"}) == [need]
    assert unmet_capabilities({need}, {"glibc:2.36"}) == []
    report("alpha", "glibc:2.31")
    wish = spec(who, environment={"name": "mine"})
    (error,) = [item for item in preview(wish, who).errors if "glibc" in item.message]
    assert (
        "built 1.0 (built on a node with 2.36) needs glibc 2.36 or newer, and alpha has 2.31" in error.message
    )
