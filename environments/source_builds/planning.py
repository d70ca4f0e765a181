"""Locks requirements of which some packages have to be built from source: everything else now, as wheels, and
those by an order to a node."""

from __future__ import annotations

import hashlib
import json
import tempfile
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from environments.errors import Unresolvable
from environments.lock_file import read_lock, without_packages
from environments.models import EnvironmentVersion
from environments.packages.file_list import (
    PackageAddress,
    read_sources,
    read_wheels,
    record_build_files,
    record_wheels,
    unsaved_file,
)
from environments.packages.package_store import fetch_now
from environments.packages.upstream import FetchFailed
from environments.requirement_list import RequirementList
from environments.resolving.requirements import ResolvedRequirements, resolve_with_sources
from environments.resolving.uv_process import SourcePackage
from environments.source_builds.draft import PackageBuild, WheelDraft
from environments.source_builds.recipe import Recipe, recipe_for, recipes_of
from environments.source_builds.repository_sources import (
    RepositorySource,
    fetch_repository_source,
    stand_in_folder,
)
from environments.source_builds.source_metadata import (
    SourceMetadata,
    UnreadableSource,
    read_source_metadata,
)
from workspaces.stored_files import blob_cache

MAX_SOURCE_PACKAGES = 10


@dataclass(frozen=True)
class _Source:
    """A package to build: its source distribution, its version, what that needs, the recipe, if any, and
    where it is from, if not from an index."""

    file: PackageAddress
    version: str
    metadata: SourceMetadata
    recipe: Recipe | None
    repository: RepositorySource | None = None


def source_packages(requirements: RequirementList) -> tuple[str, ...]:
    """Returns the packages that are built from source: those that a line `--no-binary` names, those of
    repositories, and those that have a recipe, because they have no wheels."""
    with_recipe = {name for name in requirements.names if recipes_of(name)}
    return tuple(sorted(requirements.no_binary | requirements.repositories.keys() | with_recipe))


def plan_source_builds(
    version: EnvironmentVersion, requirements: RequirementList, names: Sequence[str]
) -> WheelDraft:
    """Returns what a node has to build for the version, and records the files that it needs for it. Raises
    Unresolvable."""
    if len(names) > MAX_SOURCE_PACKAGES:
        raise Unresolvable(
            f"At most {MAX_SOURCE_PACKAGES} packages of a version are built from source, not {len(names)}."
        )
    sources = [_find_source(version, requirements, name) for name in names]
    resolved = _resolve_others(version, requirements, sources)
    locked = _locked_versions(resolved.lock)
    for source in sources:
        _check_frameworks(source, locked)
    tools = _lock_build_requirements(version, requirements, sources, locked)
    record_wheels(version, read_wheels(resolved.pylock), resolved.lock, version.python)
    files = [source.file for source in sources]
    record_build_files(version, read_wheels(tools.pylock) if tools.pylock else (), tools.lock, files)
    tool_names = frozenset(package.name for package in read_lock(tools.lock))
    build_lock = without_packages(resolved.lock, tool_names) + tools.lock
    packages = tuple(_package_build(source, version, build_lock, locked) for source in sources)
    return WheelDraft(resolved.lock, build_lock, packages)


def _resolve_others(
    version: EnvironmentVersion, requirements: RequirementList, sources: Sequence[_Source]
) -> ResolvedRequirements:
    """Returns the lock of everything that is not built, which fits what the sources need."""
    repositories = [source.repository for source in sources if source.repository is not None]
    packages = [_as_uv_package(source) for source in sources if source.repository is None]
    pinned = _with_versions(requirements, sources)
    if not repositories:
        return resolve_with_sources(version, pinned, packages)
    with stand_in_folder(repositories) as folder:
        more = {"UV_FIND_LINKS": str(folder)}
        resolved = resolve_with_sources(version, pinned, packages, more=more)
    names = frozenset(source.file.project for source in repositories)
    return replace(resolved, lock=without_packages(resolved.lock, names))


def _find_source(version: EnvironmentVersion, requirements: RequirementList, name: str) -> _Source:
    """Returns the source distribution that the requirements of this package mean."""
    if name in requirements.repositories:
        source = fetch_repository_source(version, name, requirements.repositories[name])
        recipe = recipe_for(name, source.version)
        source = replace(source, metadata=_with_recipe(source.metadata, recipe))
        return _Source(source.file, source.version, source.metadata, recipe, source)
    lines = tuple(
        text for text in requirements.requirements if canonicalize_name(Requirement(text).name) == name
    )
    # Without dependencies: those of this version are known only once its file is.
    resolved = resolve_with_sources(version, _only(requirements, lines), [SourcePackage(name)])
    file = read_sources(resolved.pylock).get(name) if resolved.pylock else None
    if file is None:
        raise Unresolvable(
            f"No index has a source distribution of {name} with a SHA-256, from which a node could build it. "
            f"Remove the line --no-binary {name}, or choose another version."
        )
    allowed = requirements.hashes.get(name)
    number = _version_in(resolved.pylock, name)
    if allowed is not None and f"sha256:{file.sha256}" not in allowed:
        raise Unresolvable(
            f"None of the hashes that the requirements give for {name} {number} is that of its source "
            "distribution. Correct them, or remove them."
        )
    recipe = recipe_for(name, number)
    if recipe is not None:
        return _Source(file, number, _with_recipe(SourceMetadata((), (), ()), recipe), recipe)
    if name not in requirements.no_binary:
        known = ", ".join(str(item.versions) for item in recipes_of(name))
        raise Unresolvable(
            f"{name} {number} has no wheel, and only versions {known} are known to work when they are built. "
            f"Choose one of them, or add the line --no-binary {name} to try this one."
        )
    return _Source(file, number, _read_metadata(version, file), None)


def _with_recipe(metadata: SourceMetadata, recipe: Recipe | None) -> SourceMetadata:
    if recipe is None:
        return metadata
    return replace(
        metadata, dependencies=recipe.dependencies, extras=(), build_requirements=recipe.build_requirements
    )


def _read_metadata(version: EnvironmentVersion, file: PackageAddress) -> SourceMetadata:
    try:
        fetch_now(unsaved_file(version, file))
        return read_source_metadata(blob_cache.local_path(file.sha256), file.filename)
    except FetchFailed as error:
        raise Unresolvable(f"The hub could not get {file.filename}: {error}.") from error
    except UnreadableSource as error:
        raise Unresolvable(f"{file.project} cannot be built: {error}.") from error


def _with_versions(requirements: RequirementList, sources: Sequence[_Source]) -> RequirementList:
    """Returns the requirements with the versions of the sources. Their hashes have been checked."""
    names = {source.file.project for source in sources}
    pins = tuple(f"{source.file.project}=={_resolved_version(source)}" for source in sources)
    hashes = {name: values for name, values in requirements.hashes.items() if name not in names}
    lines = map(_without_address, requirements.requirements)
    return replace(requirements, requirements=(*lines, *pins), hashes=hashes)


def _resolved_version(source: _Source) -> str:
    return source.version if source.repository is None else source.repository.marked_version


def _without_address(text: str) -> str:
    """Returns the requirement without the repository that it names."""
    requirement = Requirement(text)
    if not requirement.url:
        return text
    requirement.url = None
    return str(requirement)


def _as_uv_package(source: _Source) -> SourcePackage:
    return SourcePackage(source.file.project, source.metadata.dependencies, source.metadata.extras)


def _check_frameworks(source: _Source, locked: Mapping[str, str]) -> None:
    recipe = source.recipe
    if recipe is None or not recipe.frameworks or recipe.present_frameworks(locked):
        return
    names = " or ".join(name for framework in recipe.frameworks for name in framework.packages)
    raise Unresolvable(
        f"{source.file.project} is built for a framework, and the requirements name none of its own. Add "
        f"{names} with its version."
    )


def _lock_build_requirements(
    version: EnvironmentVersion,
    requirements: RequirementList,
    sources: Iterable[_Source],
    locked: Mapping[str, str],
) -> ResolvedRequirements:
    """Returns the lock of what the builds need, in the versions that the environment has where these fit."""
    needed = tuple(dict.fromkeys(text for source in sources for text in source.metadata.build_requirements))
    if not needed:
        return ResolvedRequirements("", "")
    unfit = {name for name in map(Requirement, needed) if not _fits(name, locked)}
    names = {canonicalize_name(requirement.name) for requirement in unfit}
    with tempfile.NamedTemporaryFile("w", prefix="trainhub-pins-", suffix=".txt") as constraints:
        constraints.writelines(f"{name}=={number}\n" for name, number in locked.items() if name not in names)
        constraints.flush()
        more = {"UV_CONSTRAINT": constraints.name}
        return resolve_with_sources(version, _only(requirements, needed), (), more=more)


def _fits(requirement: Requirement, locked: Mapping[str, str]) -> bool:
    number = locked.get(canonicalize_name(requirement.name))
    return number is None or requirement.specifier.contains(number, prereleases=True)


def _package_build(
    source: _Source, version: EnvironmentVersion, build_lock: str, locked: Mapping[str, str]
) -> PackageBuild:
    recipe, file, repository = source.recipe, source.file, source.repository
    content = (
        version.python,
        file.sha256,
        recipe.digest if recipe is not None else "",
        _contents(build_lock),
        *((repository.origin, repository.variables) if repository is not None else ()),
    )
    package = PackageBuild(
        name=file.project,
        version=source.version,
        filename=file.filename,
        sha256=file.sha256,
        build_key=hashlib.sha256(json.dumps(content).encode()).hexdigest(),
    )
    if repository is not None:
        package = replace(
            package,
            variables=repository.variables,
            origin=repository.origin,
            is_version_built=repository.is_version_built,
        )
    if recipe is None:
        return package
    return replace(
        package,
        variables={**package.variables, **recipe.build_variables(locked)},
        programs=tuple((program.name, program.debian) for program in recipe.programs),
        compiler_flags=tuple((item.sources, item.flags) for item in recipe.flags_for(locked)),
        checks=tuple(framework.check for framework in recipe.present_frameworks(locked)),
    )


def _version_in(pylock: str, name: str) -> str:
    packages = tomllib.loads(pylock).get("packages", ())
    return next(str(item["version"]) for item in packages if canonicalize_name(item["name"]) == name)


def _contents(lock: str) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(package.name, package.version, package.hashes) for package in read_lock(lock)]


def _locked_versions(lock: str) -> dict[str, str]:
    return {package.name: package.version for package in read_lock(lock)}


def _only(requirements: RequirementList, lines: tuple[str, ...]) -> RequirementList:
    """Returns a list of these requirements, from the same indexes."""
    return RequirementList(
        lines,
        requirements.index_url,
        requirements.extra_index_urls,
        credentials=requirements.credentials,
    )
