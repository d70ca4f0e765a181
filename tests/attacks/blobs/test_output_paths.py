"""Finding S17: a node could name its outputs as it liked, and the head of a run could write other nodes'
logs."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.logs import log_store
from jobs.models import Artifact, Attempt
from tests.jobs.builders import both_running, running
from tests.people import make_contributor, principal_of
from trainhub_launch.report import OutputFile
from workspaces.access import Principal
from workspaces.stored_files import blob_writer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("valkey")]
HOSTILE = [
    "..\\..\\win.bat",
    "C:\\x",
    "C:/x",
    "c:x",
    "CON",
    "con.txt",
    "a/NUL",
    "a/lpt1.log",
    "COM\u00b9",
    "new\nline",
    "\x1b[2Jcleared",
    "bell\x07",
    "c1\x9b31m",
    "nul\x00byte",
    "/etc/passwd",
    "../up",
    "a/../b",
    "a//b",
    "a/./b",
    ".",
    "..",
    "",
    "a/",
    "x" * 901,
    f"{'y' * 256}/z",
    "e\u0301.txt",
    "right\u202eleft.txt",
    "\ud800",
    "%2e%2e/x",
    "%252e%252e%252fx",
    "zero\u200bwidth",
]


@pytest.fixture
def who() -> Principal:
    return principal_of(make_contributor())


@pytest.fixture
def stored(tmp_path: Path) -> str:
    file = tmp_path / "file"
    file.write_bytes(b"output")
    return blob_writer.store_file(file)


@pytest.mark.parametrize("path", HOSTILE)
def test_a_bad_path_costs_only_that_file_and_warns_on_the_run(path: str, who: Principal, stored: str) -> None:
    alpha, run = running(who)
    ack = alpha.finish(run, outputs=(OutputFile(path, 6, stored), OutputFile("good.txt", 6, stored)))
    assert ack.settled
    assert list(Artifact.objects.values_list("path", flat=True)) == ["good.txt"]
    (warning,) = Attempt.objects.get().warnings
    assert "is not among the outputs" in warning
    assert warning.isascii()
    assert warning.isprintable()


@pytest.mark.parametrize(
    "path", ["größe 模型.txt", "100% #1.txt", "a b/c+d", "console.log", "com10", "auxiliary/nullable"]
)
def test_a_good_path_is_kept_as_it_is(path: str, who: Principal, stored: str) -> None:
    alpha, run = running(who)
    alpha.finish(run, outputs=(OutputFile(path, 6, stored),))
    assert Artifact.objects.get().path == path


def test_what_is_no_hash_costs_only_that_file(who: Principal, stored: str) -> None:
    alpha, run = running(who)
    alpha.finish(run, outputs=(OutputFile("bad", 6, "../../secret-key"), OutputFile("good.txt", 6, stored)))
    assert Artifact.objects.get().path == "good.txt"


def test_of_a_file_and_a_folder_of_one_name_the_file_is_left_out(who: Principal, stored: str) -> None:
    alpha, run = running(who)
    alpha.finish(run, outputs=(OutputFile("a", 6, stored), OutputFile("a/b", 6, stored)))
    assert Artifact.objects.get().path == "a/b"


def test_the_head_cannot_name_an_output_of_another_node(who: Principal, stored: str) -> None:
    alpha, _, run = both_running(who)
    alpha.finish(
        run, outputs=(OutputFile("node_1/model.pt", 6, stored), OutputFile("node_7/mine.pt", 6, stored))
    )
    assert list(Artifact.objects.values_list("path", flat=True)) == ["node_7/mine.pt"]
    assert "another node of the run" in Attempt.objects.get().warnings[0]


def test_nor_write_a_log_of_another_node(who: Principal) -> None:
    alpha, beta, run = both_running(who)
    beta.log(run, "55_preparation_log.txt", 0, b"of beta")
    assert alpha.log(run, "node_1/55_preparation_log.txt", 0, b"forged, and longer") == 18
    assert log_store.log_sizes(run.pk, 1) == {"node_1/55_preparation_log.txt": 7}
