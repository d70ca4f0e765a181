"""The kinds of datastores, and the states of datasets, that make a difference here."""

from __future__ import annotations

HUB, FOLDER, AZURE_BLOB = "hub", "folder", "azure_blob"
# Whose files runs read where they lie.
MOUNTED = (FOLDER, "nfs")
READY, LISTING = "ready", "listing"
