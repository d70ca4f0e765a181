"""The zip that the browser makes of a folder, read by Python's zipfile."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

from tests.js.node import SCRIPTS, evaluate

MODULE = (SCRIPTS / "wizard-zip.js").as_uri()
MAKE = """
import {{ writeFile }} from "node:fs/promises";
import {{ folderToZip }} from "{module}";
const files = {files}.map(([path, text, repeat]) => ({{ path, file: new Blob([text.repeat(repeat)]) }}));
const progress = [];
let error = null;
try {{
  const zip = await folderToZip(files, (sentence) => progress.push(sentence));
  await writeFile({target}, Buffer.from(await zip.arrayBuffer()));
}} catch (refusal) {{
  error = refusal.message;
}}
answer({{ progress, error }});
"""
DROP = """
import {{ filesFromDrop }} from "{module}";
// The entries of a drop, as a browser gives them: a reader returns a few at a time, and none at the end.
const fileEntry = (name) => ({{ name, isFile: true, file: (resolve) => resolve(new Blob([name])) }});
const folderEntry = (name, children) => ({{
  name, isDirectory: true,
  createReader: () => {{
    const left = [...children];
    return {{ readEntries: (resolve) => resolve(left.splice(0, 2)) }};
  }},
}});
const build = ([name, children]) => (children ? folderEntry(name, children.map(build)) : fileEntry(name));
const items = {tree}.map((entry) => ({{ webkitGetAsEntry: () => build(entry) }}));
answer((await filesFromDrop({{ items }})).map(({{ path }}) => path));
"""


def make(target: Path, *files: tuple[str, str, int]) -> Any:
    return evaluate(MAKE.format(module=MODULE, files=json.dumps(files), target=json.dumps(str(target))))


def drop(*tree: Any) -> list[str]:
    return list(evaluate(DROP.format(module=MODULE, tree=json.dumps(tree))))


class TestZip:
    def test_holds_every_file_with_its_path_and_bytes(self, tmp_path: Path) -> None:
        files = [
            ("train.py", "print(1)\n", 1),
            ("data/läufe/🚀 ω.txt", "ü", 3),
            ("empty", "", 0),
            ("large.bin", "0123456789abcdef", 20_000),
        ]
        assert make(tmp_path / "a.zip", *files)["error"] is None
        with zipfile.ZipFile(tmp_path / "a.zip") as archive:
            assert archive.testzip() is None
            assert {name: archive.read(name).decode() for name in archive.namelist()} == {
                name: text * count for name, text, count in files
            }
            assert {info.compress_type for info in archive.infolist()} == {zipfile.ZIP_STORED}

    def test_leaves_out_folders_that_never_belong_to_a_source(self, tmp_path: Path) -> None:
        files = [
            ".git/config",
            "a/node_modules/b/c.js",
            "venv",
            "src/.gitignore",
            "src/venv.py",
            ".venv/bin/python",
        ]
        make(tmp_path / "a.zip", *((path, "x", 1) for path in files))
        assert zipfile.ZipFile(tmp_path / "a.zip").namelist() == ["venv", "src/.gitignore", "src/venv.py"]

    def test_reports_progress(self, tmp_path: Path) -> None:
        files = [(f"{number}.txt", "x", 1) for number in range(120)]
        expected = ["Packing 1 of 120 files", "Packing 51 of 120 files", "Packing 101 of 120 files"]
        assert make(tmp_path / "a.zip", *files)["progress"] == expected
        assert len(zipfile.ZipFile(tmp_path / "a.zip").namelist()) == 120

    def test_refuses_a_folder_without_files(self, tmp_path: Path) -> None:
        for files in ([], [("a/.git/config", "x", 1)]):
            assert (
                make(tmp_path / "a.zip", *files)["error"]
                == "The folder contains no file that can be uploaded."
            )

    def test_refuses_a_folder_with_too_many_files(self, tmp_path: Path) -> None:
        files = [(f"{number}", "", 0) for number in range(65_001)]
        error = make(tmp_path / "a.zip", *files)["error"]
        assert error == "The folder contains 65001 files, more than the limit of 65000. Leave data out of it."


class TestDrop:
    def test_a_single_folder_is_the_root(self) -> None:
        tree = ["project", [["a.py"], ["src", [["b.py"], ["c.py"], ["d.py"]]], ["e.py"]]]
        assert drop(tree) == ["a.py", "src/b.py", "src/c.py", "src/d.py", "e.py"]

    def test_several_entries_keep_their_names(self) -> None:
        assert drop(["a.py"], ["src", [["b.py"]]]) == ["a.py", "src/b.py"]
        assert drop(["ä.zip"]) == ["ä.zip"]

    def test_skips_folders_that_never_belong_to_a_source(self) -> None:
        assert drop(["project", [[".git", [["config"]]], ["a.py"], ["__pycache__", []]]]) == ["a.py"]

    def test_of_nothing_is_nothing(self) -> None:
        assert drop(["project", []]) == []
        assert drop() == []
