"""The source of an environment of kind `image`: a text with the reference, and perhaps a second line with
the name of the secret that holds the login of the registry."""

from __future__ import annotations

from dataclasses import dataclass

from environments.images.reference import FIELD, ImageReference, parse_reference
from trainhub_launch.errors import SpecError
from workspaces.secrets.store import NAME, NAME_RULE

SECRET_FIELD = "registry_secret"  # noqa: S105 - the name of a field
MAX_LENGTH = 1000
_PREFIX = f"{SECRET_FIELD}:"


@dataclass(frozen=True)
class ImageSource:
    """`image`: the reference as it was typed; `registry_secret`: the name of a secret of the workspace whose
    value is `user:password`, or ""."""

    image: str
    registry_secret: str = ""

    @property
    def reference(self) -> ImageReference:
        """Raises SpecError if it is none."""
        return parse_reference(self.image)

    @property
    def text(self) -> str:
        return "\n".join(
            (self.image, *([f"{_PREFIX} {self.registry_secret}"] if self.registry_secret else ()))
        )


def split_source(text: str) -> ImageSource:
    """Returns the parts of a source that need not be right, such as one that is being typed."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    secrets = [line.removeprefix(_PREFIX).strip() for line in lines if line.startswith(_PREFIX)]
    images = [line for line in lines if not line.startswith(_PREFIX)]
    return ImageSource("\n".join(images), "\n".join(secrets))


def read_image_source(text: str) -> ImageSource:
    """Raises SpecError if no environment can be made from the source."""
    if len(text) > MAX_LENGTH:
        raise SpecError(FIELD, f"is {len(text)} characters long; at most {MAX_LENGTH} are kept")
    source = split_source(text)
    if "\n" in source.image:
        raise SpecError(FIELD, "name one image only")
    parse_reference(source.image)
    if source.registry_secret:
        check_secret_name(source.registry_secret)
    return source


def check_secret_name(name: str) -> None:
    """Raises SpecError if no secret can have the name."""
    if not NAME.fullmatch(name):
        raise SpecError(SECRET_FIELD, f"must be the name of a secret of the workspace: {NAME_RULE}")
