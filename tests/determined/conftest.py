from __future__ import annotations

import os

collect_ignore = [] if os.environ.get("TRAINHUB_DETERMINED") else ["test_corpus.py"]
