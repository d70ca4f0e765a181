"""The source of an environment of kind `dockerfile`: the text of the Dockerfile, and perhaps a first line, a
comment to every engine, with the name of the secret that holds the login of the registry."""

from __future__ import annotations

from dataclasses import dataclass

from environments.dockerfiles.checks import DockerfileContent, read_dockerfile
from environments.images.reference import DOCKER_HUB, parse_reference
from environments.images.source import SECRET_FIELD, check_secret_name
from trainhub_launch.errors import SpecError

_PREFIX = f"# {SECRET_FIELD}:"


@dataclass(frozen=True)
class DockerfileSource:
    """`dockerfile`: the text itself; `registry_secret`: the name of a secret of the workspace whose value is
    `user:password`, or ""."""

    dockerfile: str
    registry_secret: str = ""

    @property
    def text(self) -> str:
        line = f"{_PREFIX} {self.registry_secret}\n" if self.registry_secret else ""
        return line + self.dockerfile


def split_dockerfile(text: str) -> DockerfileSource:
    """Returns the parts of a source that need not be right, such as one that is being typed."""
    first, _, rest = text.partition("\n")
    if not first.startswith(_PREFIX):
        return DockerfileSource(text)
    return DockerfileSource(rest, first.removeprefix(_PREFIX).strip())


def join_dockerfile(dockerfile: str, registry_secret: str) -> str:
    """Returns the source for a Dockerfile, which may have the line with a secret already, and the name of a
    secret that comes before that one, or ""."""
    own = split_dockerfile(dockerfile)
    return DockerfileSource(own.dockerfile, registry_secret or own.registry_secret).text


def read_dockerfile_source(text: str) -> DockerfileContent:
    """Raises SpecError if no image can be built from the source."""
    source = split_dockerfile(text)
    content = read_dockerfile(source.dockerfile)
    if source.registry_secret:
        check_secret_name(source.registry_secret)
        login_registry(content)
    return content


def login_registry(content: DockerfileContent) -> str:
    """Returns the registry that gets the login: the only one that the Dockerfile takes images from, or the
    only one besides Docker Hub. Raises SpecError if it is not certain which one that is."""
    registries = dict.fromkeys(parse_reference(image).registry for image in content.images)
    others = [registry for registry in registries if registry != DOCKER_HUB]
    if len(others) > 1:
        raise SpecError(
            SECRET_FIELD,
            f"is a login for one registry, and the Dockerfile takes images from {', '.join(others)}; copy "
            "them to one of these, or leave the login out if all of them are public",
        )
    if not registries:
        raise SpecError(SECRET_FIELD, "has no use: the Dockerfile takes no image of a registry; leave it out")
    return others[0] if others else DOCKER_HUB
