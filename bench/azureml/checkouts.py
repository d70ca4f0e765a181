"""Working copies of the repositories of the corpus, each as it was at its commit before every script."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from bench.azureml.corpus import CorpusFile, clone_of, git, to_python

WORKSPACE = {"subscription_id": "s", "resource_group": "g", "workspace_name": "corpus"}


class Checkout:
    """One repository at one commit. `root`: its folder."""

    def __init__(self, clones: Path, repository: str, commit: str, root: Path) -> None:
        self.root = root
        self._clone = clone_of(clones, repository)
        self._env = {
            **os.environ,
            "GIT_DIR": git(self._clone, "rev-parse", "--absolute-git-dir").decode().strip(),
            "GIT_WORK_TREE": str(root),
            "GIT_INDEX_FILE": f"{root}.index",
            "GIT_LFS_SKIP_SMUDGE": "1",
        }
        root.mkdir()
        self._git("read-tree", commit)

    def script(self, file: CorpusFile) -> Path:
        """Returns the script, or the notebook as one, in a clean copy in which a workspace is configured."""
        # A clone may lack large files; a script that needs one fails by itself.
        self._git("checkout-index", "--all", "--force", "--index", "--quiet", is_checked=False)
        self._git("clean", "-ffdxq")
        config = self.root / ".azureml" / "config.json"
        config.parent.mkdir(exist_ok=True)
        config.write_text(json.dumps(WORKSPACE))
        path = self.root / file.path
        if path.suffix == ".py":
            return path
        script = path.with_name(f"{path.stem}_notebook.py")
        script.write_text("display = print\n" + to_python(file.path, path.read_bytes()))
        return script

    def _git(self, *arguments: str, is_checked: bool = True) -> None:
        argv = ["git", *arguments]
        subprocess.run(argv, cwd=self.root, env=self._env, check=is_checked, capture_output=True)
