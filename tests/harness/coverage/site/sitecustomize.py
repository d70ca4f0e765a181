"""Python runs this when a process starts that has this folder on PYTHONPATH: those of a recorded hub."""

import os
from pathlib import Path

from tests.harness.coverage import recorder

recorder.start(Path(os.environ[recorder.FOLDER_VARIABLE]))
