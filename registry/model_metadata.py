"""Descriptions, tags and names of models and versions, and the protected aliases of models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from django.db import IntegrityError, transaction
from django.utils import timezone

from registry.aliases import check_alias
from registry.errors import RegistryError
from registry.models import ModelVersion, RegisteredModel
from registry.registration import check_name
from workspaces import audit
from workspaces.models import User, Workspace

LONGEST_KEY, LONGEST_VALUE, MAX_TAGS = 250, 100_000, 1000
LONGEST_DESCRIPTION = 100_000
MAX_PROTECTED = 50
# Tags with this beginning are TrainHub's own to set.
OURS = "trainhub."
# MLflow's client stores prompts as registered models with this tag.
PROMPT = "mlflow.prompt.is_prompt"
Thing = RegisteredModel | ModelVersion


class Exists(RegistryError):
    """Another model of the workspace has that name."""


def create_model(
    workspace: Workspace,
    name: str,
    user: User | None,
    *,
    description: str = "",
    tags: Mapping[str, str] | None = None,
) -> RegisteredModel:
    """Creates a model without versions. Raises RegistryError, and Exists if the name is taken."""
    name, tags = check_name(name), checked_tags(tags or {})
    try:
        # The unique constraint decides: a query before the INSERT could miss a model that another request is
        # making.
        with transaction.atomic():
            model = RegisteredModel.objects.create(
                workspace=workspace, name=name, description=checked_description(description), tags=tags
            )
            audit.record(user or "a job", "model.created", name, workspace)
    except IntegrityError as error:
        raise Exists(
            "name", f"there is a model {name!r} already; choose another name, or add a version to it"
        ) from error
    return model


def rename(model: RegisteredModel, name: str, user: User | None) -> RegisteredModel:
    """Renames the model. Its addresses change, its certificates do not. Raises RegistryError, and Exists if
    the name is taken."""
    before, name = model.name, check_name(name)
    try:
        # A savepoint where the caller has a transaction: on PostgreSQL the failed UPDATE would otherwise end
        # that one.
        with transaction.atomic():
            model.name = name
            model.save(update_fields=["name", "updated_at"])
            audit.record(user or "a job", "model.renamed", before, model.workspace, to=name)
    except IntegrityError as error:
        model.name = before
        raise Exists("new_name", f"there is a model {name!r} already; choose another name") from error
    return model


def describe(thing: Thing, text: str) -> None:
    thing.description = checked_description(text)
    # auto_now sets `updated_at` on every save, but only the named fields are written.
    thing.save(update_fields=["description", "updated_at"])


@transaction.atomic
def describe_and_tag(thing: Thing, description: str | None, tags: Mapping[str, str | None]) -> None:
    """Sets the description unless it is None, and the tags; a tag with the value None is deleted. Changes
    everything or, if it raises RegistryError, nothing."""
    if description is not None:
        describe(thing, description)
    for key, value in tags.items():
        if value is None:
            delete_tag(thing, key)
        else:
            set_tag(thing, key, value)


def set_tag(thing: Thing, key: str, value: str) -> None:
    """Sets one tag. Raises RegistryError for tags that are too long, too many, or reserved for TrainHub."""
    tags = checked_tags({key: value})
    with transaction.atomic():
        _write(thing, {**_tags_now(thing), **tags})


def delete_tag(thing: Thing, key: str) -> bool:
    """Deletes one tag and returns whether it existed. Raises RegistryError for a key that no tag can have."""
    _check_key(key)
    with transaction.atomic():
        tags = _tags_now(thing)
        had = tags.pop(key, None) is not None
        if had:
            _write(thing, tags)
    return had


def protect(model: RegisteredModel, names: Iterable[str], user: User) -> None:
    """Replaces the model's protected aliases, which also protect stages of these names. Raises
    RegistryError."""
    listed = sorted({check_alias(name) for name in names if name.strip()})
    if len(listed) > MAX_PROTECTED:
        raise RegistryError("protected", f"may hold {MAX_PROTECTED} aliases")
    model.protected = listed
    with transaction.atomic():
        model.save(update_fields=["protected", "updated_at"])
        audit.record(user, "model.protected", model.name, model.workspace, aliases=listed)


def checked_tags(tags: Mapping[str, str]) -> dict[str, str]:
    """Returns the tags as a dict. Raises RegistryError for a tag that cannot be stored."""
    for key, value in tags.items():
        _check_key(key)
        _check_text("value", value)
        if len(value) > LONGEST_VALUE:
            raise RegistryError(
                "value", f"of the tag {key[:60]!r} has {len(value)} characters; use at most {LONGEST_VALUE}"
            )
        if key == PROMPT and value.lower() == "true":
            raise RegistryError("tags", "a prompt is not a model; TrainHub does not store prompts")
    return dict(tags)


def checked_description(text: str) -> str:
    """Returns the description without surrounding spaces. Raises RegistryError if it cannot be stored."""
    _check_text("description", text)
    if len(text) > LONGEST_DESCRIPTION:
        raise RegistryError("description", f"has {len(text)} characters; use at most {LONGEST_DESCRIPTION}")
    return text.strip()


def _check_text(field: str, text: str) -> None:
    # PostgreSQL stores no NUL in text.
    if "\x00" in text:
        raise RegistryError(field, "has the character NUL in it; leave that out")


def _check_key(key: str) -> None:
    # Half of a surrogate pair, as JSON can spell it, has no UTF-8: no answer that named it could be sent.
    is_text = all(ord(sign) >= 32 and not 0xD800 <= ord(sign) < 0xE000 for sign in key)
    if not key.strip() or len(key) > LONGEST_KEY or not is_text:
        raise RegistryError(
            "key", f"of a tag must be text of 1 to {LONGEST_KEY} characters, without control characters"
        )
    if key.startswith(OURS):
        raise RegistryError(
            "key", f"{key!r} is set by TrainHub itself; choose one that does not begin with {OURS!r}"
        )


def _tags_now(thing: Thing) -> dict[str, str]:
    """Returns the stored tags and locks the row, so that no concurrent change is lost."""
    fresh = type(thing).objects.select_for_update().get(pk=thing.pk)
    return dict(fresh.tags)


def _write(thing: Thing, tags: dict[str, str]) -> None:
    if len(tags) > MAX_TAGS:
        raise RegistryError("tags", f"may be {MAX_TAGS} at most; delete some first")
    thing.tags = tags
    # Only these columns: `thing` was read before the lock, and its other fields may be out of date.
    type(thing).objects.filter(pk=thing.pk).update(tags=tags, updated_at=timezone.now())
