"""Puts the labels of the form into findings, which name fields as the spec does."""

from __future__ import annotations

import re
from collections.abc import Mapping

from jobs.wizard.distribution_form import all_cards
from jobs.wizard.forms import StepForm

# Only names with an underscore: a single word may be an ordinary word of the sentence. Not inside of paths,
# options, variables and file names.
_FIELD = re.compile(
    r"(?<![\w./$'-])(?:(?:distribution|resources|limits)\.)?([a-z]+(?:_[a-z]+)+)(?![\w/='-])(?!\.\w)"
)


def with_labels(message: str, forms: Mapping[str, StepForm[object]]) -> str:
    """Returns the message with the labels of form fields, in quotation marks, for their names in the spec
    (`node_count`)."""
    labels = {field.path.rpartition(".")[2]: field.label for card in all_cards() for field in card.fields}
    # The chosen distribution's own labels come last, and replace those of the others.
    for form in forms.values():
        labels |= {path.rpartition(".")[2]: str(form[name].label) for path, name in form.paths.items()}
    return _FIELD.sub(lambda match: f"“{labels[match[1]]}”" if match[1] in labels else match[0], message)
