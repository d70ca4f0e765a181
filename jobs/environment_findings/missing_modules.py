"""Modules that a script imports and the run's environment lacks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from packaging.utils import canonicalize_name

from environments.contents.package_set import SEEDED, PackageSet
from environments.imports.distributions import (
    distribution_for,
    is_known_distribution,
    is_namespace,
    providers_of,
)
from environments.imports.scan_process import ImportedModule, SourceImports
from environments.imports.standard_library import REMOVED, is_standard
from environments.source_builds.recipe import recipes_of
from jobs.environment_findings.remedies import curated_with
from trainhub_launch.findings import Finding
from trainhub_launch.scheduler.capacity import words

FIELD = "environment.name"
MAX_NAMED = 8
# Requirements and a version of Python -> the address of the form that is filled in with them, or "".
Links = Callable[[Sequence[str], str], str]


def missing_module_findings(packages: PackageSet, imports: SourceImports, links: Links) -> Iterator[Finding]:
    """Yields nothing for modules of which it is not certain that they are missing."""
    # A file that could not be read may change where modules come from.
    if imports.is_opaque or not imports.is_complete:
        return
    missing = _missing(packages, imports)
    known = [module for module in missing if providers_of(module.name) and not _is_removed(module)]
    to_compile = [module for module in known if recipes_of(distribution_for(module.name))]
    removed = [module for module in missing if _is_removed(module)]
    yield from _without_wheel(packages, to_compile, links)
    yield from _known(packages, [module for module in known if module not in to_compile], links)
    yield from _unknown(packages, [module for module in missing if module not in (*known, *removed)], links)
    yield from _removed(packages, removed, links)


def _missing(packages: PackageSet, imports: SourceImports) -> list[ImportedModule]:
    """Returns the missing modules, each once, in the order in which they are imported."""
    unlisted = [name for name in packages.versions if not is_known_distribution(name)]
    missing: dict[str, ImportedModule] = {}
    provided = {module.top for module in imports.modules if _is_provided(module, packages, unlisted)}
    for module in imports.modules:
        # `torch.utils.tensorboard` is part of torch, but needs another distribution.
        is_separate = providers_of(module.name) != providers_of(module.top)
        if module.top in provided and not is_separate:
            continue
        if not _is_provided(module, packages, unlisted):
            missing.setdefault(distribution_for(module.name) or module.top, module)
    return list(missing.values())


def _is_provided(module: ImportedModule, packages: PackageSet, unlisted: Sequence[str]) -> bool:
    """Returns whether the environment has the module, or may have it. `unlisted`: those of its distributions
    of which nobody knows what they provide."""
    if is_standard(module.top, packages.python) or module.top.startswith("_"):
        return True
    providers = providers_of(module.name)
    if _is_removed(module):
        # Such as standard-aifc for aifc.
        return packages.has_any(*(providers or ())) or any(module.top in name for name in packages.versions)
    if providers is None and is_namespace(module.top):
        return True
    if providers is None:
        # A distribution that the table does not list may provide it under any name.
        return bool(unlisted) or canonicalize_name(module.top) in packages.versions
    if not providers or packages.has_any(*providers) or SEEDED.intersection(providers):
        return True
    # Such as mxnet-cu112, or a team's own acme-opencv.
    beginnings = {name.partition("-")[0] for name in providers}
    return any(beginning in name for beginning in beginnings for name in unlisted)


def _is_removed(module: ImportedModule) -> bool:
    return module.top in REMOVED


def _known(packages: PackageSet, modules: Sequence[ImportedModule], links: Links) -> Iterator[Finding]:
    if not modules:
        return
    names = [distribution_for(module.name) for module in modules]
    link = links(names, "")
    them = words(names)
    renamed = [
        f"{module.name if providers_of(module.name) != providers_of(module.top) else module.top} is in {name}"
        for module, name in zip(modules, names, strict=True)
        if canonicalize_name(module.name) != name and canonicalize_name(module.top) != name
    ]
    remedy = f"make a version of it with {them}" if link else f"choose an environment that has {them}"
    sentence = f"{_importing(modules)}, which {packages.name} lacks"
    if renamed:
        sentence += f" ({words(renamed[:MAX_NAMED])})"
    yield Finding("warning", FIELD, f"{sentence}; {remedy}", f"Add {them}" if link else "", link)


def _without_wheel(
    packages: PackageSet, modules: Sequence[ImportedModule], links: Links
) -> Iterator[Finding]:
    """Horovod and DeepSpeed are published as sources only: a node builds their wheels."""
    for module in modules:
        name = distribution_for(module.name)
        framework = "tensorflow" if module.name.startswith("horovod.tensorflow") else "torch"
        curated = curated_with(name, framework)
        link = links([name], "")
        if link:
            sentence = (
                f"{_importing([module])}, which {packages.name} lacks; make a version of it with {name}"
            )
            yield Finding("warning", FIELD, f"{sentence}, which a node builds once", f"Add {name}", link)
        elif curated:
            yield Finding(
                "warning",
                FIELD,
                f"{_importing([module])}, which {packages.name} lacks; choose {curated}, which has it with "
                "what it needs, because it has to be compiled",
            )


def _unknown(packages: PackageSet, modules: Sequence[ImportedModule], links: Links) -> Iterator[Finding]:
    for module in modules[:MAX_NAMED]:
        name = distribution_for(module.name)
        if not name:
            continue
        link = links([name], "")
        yield Finding(
            "hint",
            FIELD,
            f"{_importing([module])}, which {packages.name} lacks; it is probably provided by {name}: add "
            "that if it is what you mean, or put the module into the source folder if it is your own",
            f"Add {name}" if link else "",
            link,
        )


def _removed(packages: PackageSet, modules: Sequence[ImportedModule], links: Links) -> Iterator[Finding]:
    for module in modules:
        last = f"3.{REMOVED[module.top] - 1}"
        link = links((), last)
        yield Finding(
            "warning",
            FIELD,
            f"{_importing([module])}, which Python {packages.python} no longer has; change the script, or "
            f"use an environment with Python {last}",
            f"Use Python {last}" if link else "",
            link,
        )


def _importing(modules: Sequence[ImportedModule]) -> str:
    """Returns "train.py (line 3) imports cv2, and model.py (line 1) imports pandas and PIL"."""
    by_file: dict[str, list[ImportedModule]] = {}
    for module in modules[:MAX_NAMED]:
        by_file.setdefault(module.path, []).append(module)
    parts = []
    for path, items in by_file.items():
        lines = sorted({item.line for item in items})
        where = f"line {lines[0]}" if len(lines) == 1 else f"lines {words([str(line) for line in lines])}"
        parts.append(f"{path} ({where}) imports {words([_shown(item) for item in items])}")
    more = len(modules) - MAX_NAMED
    return words(parts) + (f" and {more} more modules are imported" if more > 0 else "")


def _shown(module: ImportedModule) -> str:
    """Returns as much of the dotted name as stands in the table."""
    if providers_of(module.name) == providers_of(module.top):
        return module.top
    parts = module.name.split(".")
    prefixes = (".".join(parts[:length]) for length in range(2, len(parts) + 1))
    return next((name for name in prefixes if providers_of(name) == providers_of(module.name)), module.name)
