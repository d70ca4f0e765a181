"""Step 2: the distribution of a run over processes. Cards and fields are those that the frameworks define."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django import forms
from django.forms.boundfield import BoundField

from jobs.wizard.forms import Raw, StepForm, whole_number
from jobs.wizard.parts import DistributionPart
from trainhub_launch.distribution import Distribution
from trainhub_launch.frameworks import FRAMEWORKS, SINGLE
from trainhub_launch.frameworks.form import ChoiceField, FormCard, FormField

# The one field of a card that may lie outside the distribution.
NODE_COUNT = "resources.node_count"


class DistributionForm(StepForm[DistributionPart]):
    template = "jobs/wizard/_distribution.html"

    def __init__(self, raw: Raw) -> None:
        super().__init__(raw)
        choices = [(card.name, card.title) for card in all_cards()]
        self.add_field("kind", forms.ChoiceField(label="Distribution", choices=choices))
        for card in all_cards():
            for field in card.fields:
                self.add_field(field.name, _django_field(field))

    def clean(self) -> dict[str, Any]:
        card = find_card(self.cleaned_data.get("kind", ""))
        # A post contains the fields of all cards, and only those of the chosen card are visible.
        self.keep_errors_of({"kind", *(field.name for field in (card.fields if card else ()))})
        return self.cleaned_data

    def cards(self) -> list[tuple[FormCard, bool, list[BoundField]]]:
        """Returns each card, whether it is chosen, and its fields in order."""
        chosen = (self.typed.get("kind") or [""])[0]
        return [
            (card, card.name == chosen, [self[field.name] for field in card.fields]) for card in all_cards()
        ]

    def part(self) -> DistributionPart:
        card = find_card(self.cleaned_data["kind"])
        if card is None or card.configuration is None:
            return DistributionPart()
        values = {field.path: self.cleaned_data[field.name] for field in card.fields}
        node_count = values.pop(NODE_COUNT, None)
        configuration = card.configuration(
            **{path.rpartition(".")[2]: value for path, value in values.items()}
        )
        return DistributionPart(configuration, node_count)

    @classmethod
    def raw(cls, part: DistributionPart) -> Raw:
        chosen = card_of(part.distribution)
        # The other cards show their defaults when the user switches to them.
        typed = {field.name: field.default for card in all_cards() for field in card.fields}
        for field in chosen.fields:
            value = (
                part.node_count
                if field.path == NODE_COUNT
                else getattr(part.distribution, field.path.rpartition(".")[2])
            )
            typed[field.name] = "" if value is None else str(value)
        return {"kind": [chosen.name]} | {name: [text] for name, text in typed.items()}

    @property
    def paths(self) -> dict[str, str]:
        card = find_card((self.typed.get("kind") or [""])[0])
        paths = card.paths if card else {}
        # A number of nodes in the resources is that of the distribution, where the card asks for one there.
        nodes = paths.get("distribution.node_count", "kind")
        return {"distribution": "kind", NODE_COUNT: nodes} | paths


def all_cards() -> Iterator[FormCard]:
    return (card for framework in FRAMEWORKS.values() for card in framework.cards)


def find_card(name: str) -> FormCard | None:
    return next((card for card in all_cards() if card.name == name), None)


def card_of(distribution: Distribution | None) -> FormCard:
    """Returns the card whose form yields this distribution."""
    cards = FRAMEWORKS[SINGLE if distribution is None else distribution.type].cards
    # A framework has several cards if people use it in several ways.
    return cards[0] if distribution is None else next(card for card in cards if card.shows(distribution))


def _django_field(field: FormField) -> forms.Field:
    if isinstance(field, ChoiceField):
        return forms.ChoiceField(label=field.label, choices=list(field.choices), help_text=field.help_text)
    return whole_number(
        field.label,
        least=field.minimum,
        most=field.maximum,
        help_text=field.help_text,
        required=field.required,
    )
