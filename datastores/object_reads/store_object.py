"""A file in a datastore that a node has described, and whether the hub can read it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from datastores.models import Datastore
from trainhub_launch.data.stores import SignIn


@dataclass(frozen=True)
class StoreObject:
    """`datastore`: None once it is deleted; `path`: the whole path in its store; `place`: where that is, in
    one line; `size_bytes` and `sha256`: as the node that wrote it said."""

    datastore: Datastore | None
    path: str
    place: str
    size_bytes: int
    sha256: str
    modified_at: datetime

    @property
    def refusal(self) -> str:
        """Why the hub cannot read it, as a sentence with the remedy; "" if it can."""
        datastore = self.datastore
        if datastore is None:
            return (
                f"It lies at {self.place}, and its datastore was deleted, so the hub cannot read it any "
                "more: read it there, with credentials of your own."
            )
        if datastore.is_folder:
            return f"It lies at {self.place}, in a folder of the nodes: read it on a node, at that path."
        if datastore.sign_in == SignIn.NODE:
            return (
                f"It lies at {self.place}, which nodes read with their own role; the hub has none: read it "
                "in a run, or sign in to the store yourself."
            )
        return ""
