"""The tags that keep what a metric on the hub cannot: before the name of the metric, the script's own name,
texts, and what kind of value it is."""

from __future__ import annotations

NAME_TAG = "azureml.name/"
TEXT_TAG = "azureml.text/"
TEXTS_TAG = "azureml.texts/"
KIND_TAG = "azureml.kind/"
