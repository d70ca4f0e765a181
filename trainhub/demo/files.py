"""Files that only the data folder of a demo has. Imports no Django, because the supervisor reads them as
well."""

from __future__ import annotations

from trainhub.installation import DATA_DIR

# What the demo consists of. Its existence also marks the folder.
FACTS = DATA_DIR / "demo.json"
# The secret of a link that signs in once.
SIGN_IN_LINK = DATA_DIR / "sign-in-link"
# Asks the supervisor to remove the folder.
REMOVE = DATA_DIR / "remove"


def is_demo() -> bool:
    return FACTS.exists()
