"""Bad input through every door of a real hub: field and remedy are named alike, and nothing is
half-written."""

from __future__ import annotations

import dataclasses
import io
import json
import re
import stat
import zipfile
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.hub import Hub
from tests.journeys.runs import Runs

pytestmark = pytest.mark.slow
EXPERIMENT = "bad input"
TRAPS = """
import os
os.makedirs("outputs/sub dir")
for path in ("fine", "empty", "sub dir/é 漢.txt", "new\\nline"):
    open(f"outputs/{path}", "w").write("" if path == "empty" else "x")
os.symlink("/etc/passwd", "outputs/out")
os.mkfifo("outputs/pipe")
"""


@dataclasses.dataclass(frozen=True)
class Bad:
    """`spec` for API and command line, the same `typed` at `step` of the wizard; `says` in all three, at
    `field` and `box`."""

    spec: dict[str, Any]
    step: str
    typed: dict[str, str]
    field: str
    box: str
    says: str
    script: dict[str, str] = dataclasses.field(default_factory=lambda: {"script": "main.py"})

    @property
    def whole(self) -> dict[str, Any]:
        return {"experiment": EXPERIMENT, **self.script, **self.spec}


def processes(count: int, nodes: int = 1, *, says: str, at: str = "process_count") -> Bad:
    shape = {"type": "pytorch", "communication_backend": "gloo", "process_count": count, "node_count": nodes}
    typed = {
        "kind": "pytorch_process", "pp_process_count": str(count), "pp_node_count": str(nodes),
        "pp_backend": "gloo",
    }  # fmt: skip
    return Bad({"distribution": shape}, "distribution", typed, f"distribution.{at}", f"pp_{at}", says)


def gpus(count: int, says: str) -> Bad:
    typed = {"cluster": "local", "gpus_per_node": str(count), "timeout": "", "grace_s": "10", "retries": "0"}
    return Bad(
        {"resources": {"gpus_per_node": count}},
        "resources",
        typed,
        "resources.gpus_per_node",
        "gpus_per_node",
        says,
    )


def script(name: str, says: str) -> Bad:
    return Bad({"script": name}, "source", {"runs": "script", "script": name}, "script", "script", says, {})


BAD = {
    "empty script": script("", "ame the script to run"),
    "script not there": script("mian.py", "mian.py is not in the source folder; did you mean main.py?"),
    "environment": Bad(
        {"environment": {"name": "Torchy"}}, "environment",
        {"environment": "Torchy", "experiment": EXPERIMENT},
        "environment.name", "environment", "o environment is called 'Torchy'; there are: TrainHub-",
    ),
    "no processes": processes(0, says="between 1 and 4096"),
    "fewer than none": processes(-1, says="between 1 and 4096"),
    "very many": processes(10**12, says="between 1 and 4096"),
    "no nodes": processes(2, 0, says="between 1 and 1024", at="node_count"),
    "not divisible": processes(3, 2, says="3 processes cannot be divided evenly among 2 nodes; use 2 or 4"),
    "more GPUs than a node has": gpus(64, "no node has that many; "),
    "more GPUs than there are": gpus(999, "between 0 and 64"),
    "mpirun": Bad(
        {"command": ["mpirun", "-np", "4", "python", "main.py"]},
        "source", {"runs": "command", "command": "mpirun -np 4 python main.py"},
        "command", "command", "leave mpirun out, give", {},
    ),
    "unknown variable": Bad(
        {"arguments": ["--rank", "$RANKK"]}, "source",
        {"runs": "script", "script": "main.py", "arguments": "--rank $RANKK"},
        "arguments[1]", "arguments", "$RANKK will not exist; add it to the environment variables",
    ),
}  # fmt: skip


def packed(*entries: tuple[str, bytes, int]) -> bytes:
    """A zip of main.py and of (name, content, mode)."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("main.py", "print('here')")
        for name, content, mode in entries:
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, content)
    return out.getvalue()


PLAIN = stat.S_IFREG | 0o644
ZIPS = {
    "it is not a zip file": b"this is no zip",
    "or it was cut off": packed()[:-30],
    "'../evil.py' leads out of the folder; pack it without '..'": packed(("../evil.py", b"x", PLAIN)),
    "'/etc/evil' is an absolute path; pack": packed(("/etc/evil", b"x", PLAIN)),
    "'link' is a link; put the file itself there": packed(("link", b"/etc/passwd", stat.S_IFLNK | 0o777)),
    "more than 200 times its size": packed(("zeros.bin", bytes(20_000_000), PLAIN)),
    "'main.py' is in it twice; pack": packed(("mine.py", b"again", PLAIN)).replace(b"mine.py", b"main.py"),
    "contains characters that cannot be shown; rename it": packed(("new\nline.py", b"x", PLAIN)),
    "'.gitignore' cannot be read": packed((".gitignore", b"*", PLAIN)).replace(
        b".gitignore", b".gitignorf", 1
    ),
    ".gitignore, line 1: '!' is not a pattern; correct": packed((".gitignore", b"!", PLAIN)),
}


class Wizard:
    """The pages as a browser without scripts uses them."""

    def __init__(self, hub: Hub, browser: httpx.Client) -> None:
        self.hub, self.browser = hub, browser

    def post(self, path: str, typed: dict[str, str] | None = None, **more: Any) -> httpx.Response:
        token = self.browser.cookies[self.hub.cookie("csrftoken")]
        return self.browser.post(path, data={"csrfmiddlewaretoken": token, **(typed or {})}, **more)

    def upload(self, content: bytes) -> httpx.Response:
        return self.post("/runs/new/upload/", files={"file": ("source.zip", content)}, follow_redirects=True)

    def draft(self) -> str:
        """The address of a new draft with main.py."""
        return str(self.upload(packed()).url).rpartition("source/")[0]


@pytest.fixture(scope="module")
def wizard(hub: Hub) -> Iterator[Wizard]:
    with hub.client("") as browser:
        browser.get("/sign-in/")
        found = Wizard(hub, browser)
        assert found.post("/sign-in/", {"username": "admin", "password": hub.password}).status_code == 302
        yield found


@pytest.fixture(scope="module")
def snapshot(hub: Hub) -> str:
    return Runs(hub).snapshot(main_py="print('here')")


def text(page: str) -> str:
    return unescape(re.sub(r"<[^>]+>", "", page))


def kept(hub: Hub) -> set[Path]:
    """Everything the hub keeps of sources, and what it works on."""
    paths = {path for name in ("blobs", "tmp") for path in (hub.data_dir / name).rglob("*")}
    # That of a note which the hub makes some time after its first start.
    return paths - {hub.data_dir / "blobs" / "sealed"}


def newest(runs: Runs) -> list[str]:
    return [run["id"] for run in runs.get("/runs/?page_size=1")["results"]]


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
class TestSpec:
    def test_the_api_names_field_and_remedy(self, bad: Bad, runs: Runs, snapshot: str) -> None:
        answer = runs.client.post(
            "/api/v1/runs/", json={**bad.whole, "source": {"type": "snapshot", "id": snapshot}}
        )
        assert answer.status_code == 400
        assert [
            wrong
            for wrong in answer.json()["errors"]
            if wrong["field"] == bad.field and bad.says in wrong["message"]
        ]
        assert runs.get(f"/runs/?experiment={EXPERIMENT}")["results"] == []

    def test_the_command_line_says_the_same(
        self, bad: Bad, runs: Runs, snapshot: str, tmp_path: Path
    ) -> None:
        path = tmp_path / "spec.json"
        path.write_text(json.dumps({**bad.whole, "source": {"type": "snapshot", "id": snapshot}}))
        done = runs.hub.manage("submit", str(path), check=False)
        assert done.returncode == 2
        assert [
            line
            for line in done.stderr.splitlines()
            if line.startswith(f"{bad.field}: ") and bad.says in line
        ], done.stderr
        assert runs.get(f"/runs/?experiment={EXPERIMENT}")["results"] == []

    def test_the_wizard_says_it_beside_its_field_and_submits_nothing(
        self, bad: Bad, runs: Runs, wizard: Wizard
    ) -> None:
        before, draft = newest(runs), wizard.draft()
        answer = wizard.post(f"{draft}{bad.step}/", bad.typed)
        assert answer.status_code == 422
        beside = answer.text.partition(f'id="finding-{bad.box}"')[2].partition("</div>")[0]
        assert bad.says in text(beside)
        submitted = wizard.post(f"{draft}submit/")
        assert submitted.status_code == 422
        assert bad.says in text(submitted.text)
        assert newest(runs) == before


@pytest.mark.parametrize(("says", "content"), ZIPS.items(), ids=ZIPS)
def test_a_hostile_zip_is_refused_alike_and_nothing_of_it_stays(
    says: str, content: bytes, hub: Hub, runs: Runs, wizard: Wizard
) -> None:
    before = kept(hub)
    answer = runs.client.post("/api/v1/snapshots/", files={"file": ("source.zip", content)})
    assert answer.status_code == 400
    assert [
        wrong for wrong in answer.json()["errors"] if wrong["field"] == "source" and says in wrong["message"]
    ]
    page = wizard.upload(content)
    assert page.url.path == "/runs/new/"
    assert "The source was not taken: " in text(page.text)
    assert says in text(page.text)
    assert kept(hub) == before


@pytest.mark.parametrize(
    ("name", "target", "says"),
    [
        ("link", "/etc/passwd", "leads out of the folder"),
        ("round", "round", "remove it"),
        ("new\nline", "main.py", "rename it"),
    ],
)
def test_a_hostile_folder_is_refused_by_the_command_line(
    name: str, target: str, says: str, hub: Hub, tmp_path: Path
) -> None:
    code = tmp_path / "code"
    code.mkdir()
    (code / "main.py").write_text("print('here')")
    (code / name).symlink_to(target)
    (tmp_path / "spec.json").write_text(
        json.dumps({"source": {"type": "local", "path": "code"}, "script": "main.py"})
    )
    before = kept(hub)
    done = hub.manage("submit", str(tmp_path / "spec.json"), check=False)
    assert done.returncode == 2
    assert re.match(rf"source: .*{says}", done.stderr)
    assert kept(hub) == before


class TestRunning:
    def test_a_script_that_python_cannot_read_fails_with_its_error_as_the_cause(
        self, runs: Runs, wizard: Wizard
    ) -> None:
        ended = runs.ended(runs.script("def f(:\n    pass\n"))
        assert (ended["state"], ended["sentence"].partition(" on ")[0]) == (
            "Failed",
            "Rank 0 exited with code 1",
        )
        page = wizard.browser.get(f"/runs/{ended['number']}/logs/").text
        assert page.index("SyntaxError: invalid syntax</h2>") < page.index('data-mount="log-view"')

    def test_names_that_are_no_plain_words_reach_the_script(self, runs: Runs) -> None:
        name = "my data é 漢/a b.txt"
        source = runs.snapshot(**{"main_py": f"print(open({name!r}, encoding='utf-8').read())", name: "x"})
        run = runs.submit({"source": {"type": "snapshot", "id": source}, "script": "main.py"})
        assert runs.ended(run)["state"] == "Completed"
        assert runs.log(run) == b"x\n"

    def test_of_its_outputs_only_files_of_its_own_are_kept_and_the_rest_is_told(self, runs: Runs) -> None:
        run = runs.script(TRAPS)
        assert runs.ended(run)["state"] == "Completed"
        assert runs.outputs(run) == ["empty", "fine", "sub dir/é 漢.txt"]
        told = json.dumps(runs.get(f"/runs/{run}/events/"))
        assert all(f"{name} is not among the outputs" in told for name in ("out", "pipe", "line'"))
