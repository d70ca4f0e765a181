"""The form fields of each framework in the wizard, as plain values; `jobs/wizard/distribution_form.py` makes
form fields of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from trainhub_launch.distribution import Distribution


def any_configuration(distribution: Distribution) -> bool:  # noqa: ARG001 (the shape of `FormCard.shows`)
    return True


@dataclass(frozen=True)
class NumberField:
    """A form field for a whole number.

    `name` must be unique among the cards of all frameworks, because drafts store the input under it. `path`
    is the field of the spec that the number becomes: `distribution.…`, or `resources.node_count`. `default`
    is the initial text of the field. A number that is not `required` may be left blank, which gives None."""

    name: str
    label: str
    path: str
    default: str
    maximum: int
    minimum: int = 1
    help_text: str = ""
    required: bool = True


@dataclass(frozen=True)
class ChoiceField:
    """A form field for one of `choices`, pairs of the value in the spec and its text for people. The other
    attributes are those of NumberField."""

    name: str
    label: str
    path: str
    default: str
    choices: tuple[tuple[str, str], ...]
    help_text: str = ""


FormField = NumberField | ChoiceField


@dataclass(frozen=True)
class FormCard:
    """One choice of the wizard's step "Distribution".

    A framework has several cards where people can use it in several ways.
    `name` is unique among all cards and starts with the name of the framework.
    `variables` are those that a script can read, separated by spaces.
    `configuration` makes the configuration from the values of the fields, each passed under the last part
    of its `path`; None = no distribution.
    `shows` says whether a configuration of the framework belongs to this card.
    `extra_paths`: further fields of the spec -> the form field below which findings about them appear.
    """

    name: str
    title: str
    sentence: str
    variables: str = ""
    fields: tuple[FormField, ...] = ()
    configuration: Callable[..., Distribution] | None = None
    shows: Callable[[Distribution], bool] = any_configuration
    extra_paths: Mapping[str, str] = field(default_factory=dict)

    @property
    def variable_names(self) -> list[str]:
        return self.variables.split()

    @property
    def paths(self) -> dict[str, str]:
        """Field of the spec -> the form field below which findings about it appear."""
        return {item.path: item.name for item in self.fields} | dict(self.extra_paths)
