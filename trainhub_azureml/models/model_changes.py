"""What of a registered model may be changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from trainhub_azureml.exceptions import UserErrorException
from trainhub_azureml.models import version_tags
from trainhub_azureml.models.registry_calls import RegistryCalls

if TYPE_CHECKING:
    from trainhub_azureml.workspace import Workspace


class ModelChanges:
    """The calls that change a version. A job may change what its run has made; for another version they raise
    NotAllowed."""

    workspace: Workspace
    name: str
    version: int
    tags: dict[str, Any]
    properties: dict[str, Any]

    def _take(self, workspace: Workspace, row: Mapping[str, Any]) -> None:
        raise NotImplementedError

    def update(
        self, tags: Mapping[str, Any] | None = None, description: str | None = None, **_others: Any
    ) -> None:
        """Replaces all tags, or the description."""
        if description is not None:
            self._calls().describe(self.name, self.version, description)
        if tags is not None:
            self._refresh()
            changed = version_tags.version_tags(tags, None, None, None, {})
            self._change(changed, [key for key in self.tags if key not in changed])
        self._refresh()

    def add_tags(self, tags: Mapping[str, Any]) -> None:
        self.update_tags_properties(add_tags=tags)

    def remove_tags(self, tags: Any) -> None:
        self.update_tags_properties(remove_tags=tags)

    def add_properties(self, properties: Mapping[str, Any]) -> None:
        """Raises UserErrorException for one that has another value already: they never change."""
        self.update_tags_properties(add_properties=properties)

    def update_tags_properties(
        self,
        add_tags: Mapping[str, Any] | None = None,
        remove_tags: Any = None,
        add_properties: Mapping[str, Any] | None = None,
    ) -> None:
        """All three at once. Raises UserErrorException for a property that has another value already."""
        self._refresh()
        for key, value in (add_properties or {}).items():
            if self.properties.get(key, str(value)) != str(value):
                raise UserErrorException(
                    f"add_properties: {key} is {self.properties[key]!r}, and never changes."
                )
        removed = [remove_tags] if isinstance(remove_tags, str) else remove_tags or ()
        changed = version_tags.version_tags(add_tags, add_properties, None, None, {})
        self._change(changed, [key for key in removed if key in self.tags])
        self._refresh()

    def delete(self) -> None:
        """Deletes this version. Raises NotAllowed unless the token is that of an owner."""
        self._calls().delete(self.name, self.version)

    def _calls(self) -> RegistryCalls:
        return RegistryCalls(self.workspace._client().api)

    def _change(self, tags: Mapping[str, str], removed: Iterable[str]) -> None:
        for key in removed:
            self._calls().delete_tag(self.name, self.version, key)
        for key, value in tags.items():
            self._calls().set_tag(self.name, self.version, key, value)

    def _refresh(self) -> None:
        """Reads the version again. Nothing changes if it was deleted: the call that follows says so."""
        for row in self._calls().versions(self.name, self.version):
            self._take(self.workspace, row)
