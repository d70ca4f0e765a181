"""The logins for indexes and repositories that a version names with secrets of its workspace."""

from __future__ import annotations

from urllib.parse import urlsplit

from environments.conda.environment_file import read_environment_file
from environments.indexes.index_address import IndexCredentials
from environments.indexes.index_secrets import index_credentials
from environments.models import EnvironmentVersion
from environments.projects.pip_source import source_requirements
from environments.repositories.repository_address import Repository
from environments.states import EnvironmentKind


def index_login(version: EnvironmentVersion, scheme: str, host: str) -> IndexCredentials | None:
    """Returns the login of the version's index at this host (with its port), if that has one. Raises
    SecretRefused."""
    if version.kind == EnvironmentKind.PIP:
        named = source_requirements(version.source).credentials
    elif version.kind == EnvironmentKind.CONDA:
        requirements = read_environment_file(version.source).pip
        named = requirements.credentials if requirements is not None else {}
    else:
        return None
    matching = {url: item for url, item in named.items() if _place(url) == (scheme, host)}
    return next(iter(index_credentials(version, matching).values()), None) if matching else None


def repository_login(version: EnvironmentVersion, repository: Repository) -> IndexCredentials | None:
    """Returns the login of a repository of the version, if it has one. Raises SecretRefused."""
    if repository.credentials is None:
        return None
    url = repository.url
    return index_credentials(version, {url: repository.credentials}).get(url)


def named_repository(version: EnvironmentVersion, project: str) -> Repository | None:
    """Returns the repository that the version's source names for a package."""
    if version.kind != EnvironmentKind.PIP:
        return None
    return source_requirements(version.source).repositories.get(project)


def _place(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc.lower()
