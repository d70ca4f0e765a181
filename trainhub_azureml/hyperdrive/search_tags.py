"""The tags of a search and of its runs, by which each process knows what they are."""

from __future__ import annotations

# Of a search that has ended, and of a run that a policy has ended: why, as a sentence.
REASON = "azureml.hyperdrive.reason"
# Of a run: the values of its hyperparameters, as JSON. Scripts read this tag.
HYPERPARAMETERS = "hyperparameters"
NOTE = "mlflow.note.content"
# The hub ends an external run that is running after this time.
ALIVE_UNTIL = "trainhub.alive_until"
