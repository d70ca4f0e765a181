"""Each code block of the documents on the SDK and the command line is executed here, on a real hub.

A document has a folder with the files of FILES; its blocks are executed there in order. Rules:

- A `python` block that begins with `# NAME.py` becomes this file; the other ones share a namespace.
- Of a `console` block, what stands behind `$ ` goes to a shell. The lines below it must be printed, in this
  order and perhaps among others: their first four words count, all numbers are alike, and `…` stands for any
  lines.
- Each line of an `sh` block goes to a shell and must succeed.
- A `toml` block is the mapping file of scripts of the Azure ML SDK.
- REPLACEMENTS: what of a block means this hub; the number 12 is the newest run.
- NOT_EXECUTED: blocks that need what is not here. Such a block must exist."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.hub import Hub
from trainhub_azureml.local_files.mapping import read_mapping

pytestmark = pytest.mark.slow
PROJECT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WORDS = 4
# Document: the files that its reader has.
FILES: dict[str, dict[str, str]] = {
    "sdk.md": {},
    "command-line.md": {
        "train.py": "import pathlib, sys\n"
        "print('hello', sys.argv[1:])\n"
        "for step in range(3):\n"
        "    print('step', step)\n"
        "pathlib.Path('outputs').mkdir(exist_ok=True)\n"
        "pathlib.Path('outputs/model.pt').write_bytes(bytes(1000))\n",
        "token-file": "TOKEN\n",
    },
    "export.md": {
        "train.py": "import sys\nprint(sys.argv[1:])\n",
        "train.sbatch": "#!/bin/bash\n#SBATCH --job-name=birds\n#SBATCH --partition=gpu\nmodule load cuda\n"
        "srun python train.py --epochs 3\n",
    },
    "azureml.md": {
        "code/train.py": "import sys\nprint(sys.argv[1:])\n",
        "submit.py": "import sys\n"
        "from azureml.core import Environment, Experiment, ScriptRunConfig, Workspace\n"
        "ws = Workspace('s', 'g', 'w')\n"
        "env = Environment('plain')\n"
        "env.python.user_managed_dependencies = True\n"
        "config = ScriptRunConfig('code', 'train.py', arguments=sys.argv[1:], environment=env)\n"
        "Experiment(ws, 'birds').submit(config).wait_for_completion(show_output=True)\n",
    },
    "determined.md": {
        "const.yaml": "name: birds\nentrypoint: python3 train.py\nresources: {slots_per_trial: 0}\n"
        "searcher: {name: single, metric: loss, max_length: 1}\nhyperparameters: {lr: 0.1}\n",
        "train.py": "import determined\n"
        "with determined.core.init() as context:\n"
        "    loss = 1 - determined.get_cluster_info().trial.hparams['lr']\n"
        "    context.train.report_training_metrics(steps_completed=1, metrics={'loss': loss})\n",
    },
}
# The beginning of a block: why it is not executed.
NOT_EXECUTED = {
    "pip install --no-index --find-links https://HUB/sdk/ trainhub": "tests/sdk_downloads/test_install.py",
    "curl -fsSk -o trainhub-ca.pem https://HUB:8000/sdk/ca.pem": "tests/sdk_downloads/test_install.py",
    "$ trainhub login https://hub.example\n": "a person allows it: tests/cli/test_device_page.py",
    "PYTHON -m pip download": "it downloads from an index: tests/sdk_downloads/test_install.py",
}


class CodeBlock(NamedTuple):
    language: str
    text: str


class Folder:
    """Executes the blocks of a document in a folder, for a hub."""

    def __init__(self, folder: Path, hub: Hub) -> None:
        self._folder = folder
        self._hub = hub
        self._namespace: dict[str, Any] = {"__name__": "__main__"}
        self._executors: dict[str, Callable[[str], None]] = {
            "python": self._python,
            "console": self._console,
            "sh": self._sh,
            "toml": self._toml,
        }

    def execute(self, block: CodeBlock) -> None:
        self._executors[block.language](self._replaced(block.text))

    def _replaced(self, text: str) -> str:
        with self._hub.client() as client:
            runs = client.get("/api/v1/runs/", params={"page_size": 1}).raise_for_status().json()["results"]
        replacements = {
            # This hub's node has neither GPUs nor a way to an index of packages.
            r"--gpus 2 --env TrainHub-PyTorch-2.13 ": "",
            r', environment="TrainHub-PyTorch-2.13"': "",
            r"https://hub\.example": self._hub.url,
            r"\b12\b": str(runs[0]["number"]) if runs else "12",
            r"\bada\b": "admin",
            r"path/to/repository": ".",
            r"\| jq -r .*": "",
        }
        for pattern, replacement in replacements.items():
            text = re.sub(pattern, replacement, text)
        return text

    def _python(self, text: str) -> None:
        name = re.match(r"# (\S+\.py)\n", text)
        if name:
            (self._folder / name[1]).write_text(text)
            return
        exec(compile(text, "document", "exec"), self._namespace)  # noqa: S102 - of our own document

    def _console(self, text: str) -> None:
        for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            line, _, output = part.partition("\n")
            printed = iter([_shape(one) for one in self._shell(line).splitlines()])
            for expected in output.splitlines():
                assert expected == "…" or _shape(expected) in printed, f"{line} does not print: {expected}"

    def _sh(self, text: str) -> None:
        for line in text.splitlines():
            self._shell(line)

    def _toml(self, text: str) -> None:
        file = self._folder / "trainhub-azureml.toml"
        file.write_text(text)
        assert read_mapping(str(file)).compute

    def _shell(self, line: str) -> str:
        done = subprocess.run(
            ["sh", "-c", line],
            cwd=self._folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, f"{line}: {done.stdout}"
        return done.stdout


def blocks(document: str) -> Iterator[CodeBlock]:
    for language, text in BLOCK.findall((PROJECT / "docs" / document).read_text()):
        yield CodeBlock(language, text)


def is_executed(block: CodeBlock) -> bool:
    return not block.text.startswith(tuple(NOT_EXECUTED))


def _shape(line: str) -> list[str]:
    return re.sub(r"\d+", "N", line).split()[:WORDS]


@pytest.fixture
def folder(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which `trainhub` is the command line of this project, for the hub."""
    program = tmp_path / "bin" / "trainhub"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m trainhub_cli "$@"\n')
    program.chmod(0o755)
    variables = {
        "HOME": str(tmp_path),
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(PROJECT),
        "TRAINHUB_URL": hub.url,
        "TRAINHUB_TOKEN": hub.owner_token(),
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    path = tmp_path / "here"
    path.mkdir()
    monkeypatch.chdir(path)
    return path


@pytest.mark.parametrize("document", FILES)
def test_the_blocks_of_a_document_are_true(document: str, hub: Hub, folder: Path) -> None:
    for name, text in FILES[document].items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text.replace("TOKEN", hub.owner_token()))
    here = Folder(folder, hub)
    executed = [block for block in blocks(document) if is_executed(block)]
    assert executed
    for block in executed:
        here.execute(block)


def test_a_block_that_is_not_executed_exists() -> None:
    texts = [block.text for document in FILES for block in blocks(document)]
    assert not [begin for begin in NOT_EXECUTED if not any(text.startswith(begin) for text in texts)]
