"""Folders whose files have a list, which nodes compare before a run starts."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from tests.node.hub import FakeHub
from tests.node.probing.results import Results
from tests.node.probing.test_probes import done, of_folder, probe_order
from trainhub_launch.data.manifests import ListedFile, ManifestWriter
from trainhub_node.agent import Agent
from trainhub_node.data.comparison import listed_folders
from trainhub_node.supervisor.gang import Gang, PreparationFailed


class TestListedFolder:
    """A run reads a folder whose files have a list."""

    @pytest.fixture
    def manifest(self, hub: FakeHub, agent: Agent, results: Results, data: Path, tmp_path: Path) -> Path:
        (data / "deep").mkdir()
        for name in ("a.txt", "b.txt", "deep/c.txt"):
            (data / name).write_bytes(b"a")
        assert not done(hub, probe_order(results, "list", **of_folder(data))).error
        manifest = tmp_path / "list"
        with manifest.open("wb") as output:
            writer = ManifestWriter(output)
            for file in results.lists[0]:
                writer.write(ListedFile(*file))
            writer.flush()
        return manifest

    def test_has_the_listed_files_until_one_changes(self, data: Path, manifest: Path) -> None:
        gang = self.gang(data, manifest)
        listed_folders.check_lists(gang)
        assert gang.state["log"] == ["Input birds: its files are those of the list."]
        (data / "b.txt").write_bytes(b"b")
        assert problem_of(gang) == (
            f"Input birds on node here: The folder {data} has another b.txt than when it was listed: it was "
            "changed meanwhile. Refresh the dataset, and start the run with its new version. Or choose "
            '"if_changed": "use" for this input, and it reads what is there now.'
        )
        (data / "a.txt").unlink()
        assert f"The folder {data} has no a.txt any more. Refresh the dataset" in problem_of(gang)
        assert not gang.state["changed_inputs"]

    def test_is_used_with_changed_files_where_the_run_says_so(self, data: Path, manifest: Path) -> None:
        gang = self.gang(data, manifest, uses_changed=True)
        listed_folders.check_lists(gang)
        assert not gang.state["changed_inputs"]
        (data / "b.txt").write_bytes(b"b")
        (data / "a.txt").unlink()
        (data / "new.txt").touch()
        listed_folders.check_lists(gang)
        sentence = (
            "Input birds is not exactly its version: on node here 2 files are not as listed (a.txt is gone, "
            "b.txt was changed). The run reads what is there now."
        )
        assert gang.state["log"][1:] == [
            "Input birds: a.txt is gone.",
            "Input birds: b.txt was changed.",
            sentence,
        ]
        assert (gang.state["changed_inputs"], gang.state["warnings"]) == (["birds"], [sentence])

    def test_that_has_none_of_them_is_not_used(self, data: Path, manifest: Path) -> None:
        shutil.rmtree(data)
        data.mkdir()
        assert "has none of the files of this version any more" in problem_of(
            self.gang(data, manifest, uses_changed=True)
        )

    def gang(self, data: Path, manifest: Path, *, uses_changed: bool = False) -> Gang:
        listed = {"manifest": "a" * 64, "is_file": False, "uses_changed": uses_changed}
        state: dict[str, list[str]] = {"log": [], "warnings": [], "changed_inputs": []}
        parts = {
            "order": {"lists": {"birds": listed}},
            "input_paths": {"birds": str(data)},
            "terms": {"node": "here", "account": None},
            "folder": SimpleNamespace(manifest=lambda sha256: str(manifest)),
            "check_stop": lambda: None,
            "state": state,
            "log": state["log"].append,
            "warn": state["warnings"].append,
            "note_changed_input": state["changed_inputs"].append,
        }
        return cast("Gang", SimpleNamespace(**parts))


def problem_of(gang: Gang) -> str:
    with pytest.raises(PreparationFailed) as refused:
        listed_folders.check_lists(gang)
    return refused.value.sentence
