from __future__ import annotations

# What an input that is a version of a dataset says where MLflow names the type of its source.
DATASET_SOURCE = "trainhub"
