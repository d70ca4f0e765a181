from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


class Unresolvable(Exception):
    """A version cannot be locked; the message is a sentence for the person who made it."""


class NeedsNode(Exception):
    """A node must make what the version consists of. `draft`: what the node is to do, with the field `kind`:
    the name under which nodes know that work."""

    def __init__(self, draft: Mapping[str, Any]) -> None:
        super().__init__("A node must make it.")
        self.draft = json.dumps(draft)
