"""S16: names in a run's folder that lead elsewhere, opened, listed or removed by an agent that has more
rights than the run."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.attacks.node.runner import as_account, hostile_process, needs_root, nobody, owners
from trainhub_node.outputs.output_files import output_files
from trainhub_node.rundir import RunDir
from trainhub_node.untrusted import beneath, removal
from trainhub_node.untrusted.beneath import OutsideFolder
from trainhub_node.untrusted.run_files import open_run_file

OPENERS = [beneath.open_by_kernel, beneath.open_by_steps]
OUTWARD = ("../secret", "in/../../secret", "absolute", "in/up", "root/etc/passwd", "loop", "/etc/passwd")
DEPTH, ROUNDS = 3000, 150


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A working folder with links of all kinds, and a secret beside it."""
    made = tmp_path / "work"
    (made / "in").mkdir(parents=True)
    (made / "in" / "file").write_text("mine")
    (tmp_path / "secret").write_text("not mine")
    for name, target in {
        "absolute": str(tmp_path / "secret"),
        "in/up": "../../secret",
        "loop": "loop",
        "root": "/proc/self/root",
        "latest": "in/file",
        "again": "in/../latest",
        "folder": "in",
    }.items():
        (made / name).symlink_to(target)
    return made


@pytest.fixture
def root(work: Path) -> Iterator[int]:
    fd = beneath.open_root(str(work))
    yield fd
    os.close(fd)


@pytest.mark.parametrize("opener", OPENERS)
class TestOpening:
    @pytest.mark.parametrize("path", OUTWARD)
    @pytest.mark.parametrize("follow_links", [True, False])
    def test_no_name_leads_out(
        self, opener: Callable[..., int], root: int, path: str, follow_links: bool
    ) -> None:
        try:
            entry = opener(root, path, follow_links=follow_links)
        except OutsideFolder:
            return
        # A link itself may be had where none is followed: it leads nowhere.
        assert not follow_links
        assert stat.S_ISLNK(os.fstat(entry).st_mode)
        os.close(entry)

    @pytest.mark.parametrize("path", ["in/file", "latest", "again", "folder/file", "in/./file"])
    def test_links_that_stay_inside_are_followed(
        self, opener: Callable[..., int], root: int, path: str
    ) -> None:
        entry = opener(root, path, follow_links=True)
        assert Path(f"/proc/self/fd/{entry}").read_text() == "mine"
        os.close(entry)

    def test_no_link_is_followed_where_none_may_be(self, opener: Callable[..., int], root: int) -> None:
        with pytest.raises(OutsideFolder):
            opener(root, "folder/file", follow_links=False)


def test_a_pipe_of_roots_behind_a_link_is_not_opened(work: Path, tmp_path: Path) -> None:
    """S16. Whoever waited to write into the pipe was let through, and ended by SIGPIPE."""
    os.mkfifo(tmp_path / "pipe", 0o600)
    (work / "in" / "pipe").hardlink_to(tmp_path / "pipe")
    (work / "link").symlink_to("in/pipe")
    (work / "outward").symlink_to(tmp_path / "pipe")
    let_through = threading.Event()

    def write() -> None:
        fd = os.open(tmp_path / "pipe", os.O_WRONLY)
        let_through.set()
        os.close(fd)

    writer = threading.Thread(target=write)
    writer.start()
    for _ in range(20):
        for name in ("link", "outward", "in/pipe"):
            with pytest.raises(OutsideFolder):
                open_run_file(str(work), name)
    assert not let_through.wait(0.2)
    os.close(os.open(tmp_path / "pipe", os.O_RDONLY))
    writer.join(10)
    assert not writer.is_alive()


def test_an_absolute_link_into_the_folder_is_followed(work: Path) -> None:
    (work / "best").symlink_to(work / "in" / "file")
    fd = open_run_file(str(work), "best")
    assert os.read(fd, 10) == b"mine"
    os.close(fd)


@needs_root
class TestRaces:
    def test_names_of_a_foreign_folder_never_get_among_the_outputs(
        self, tmp_path: Path, open_folder: Path
    ) -> None:
        """S16. By path, a folder that became a link between two looks was listed with root's rights."""
        victim = tmp_path / "victim"
        victim.mkdir(mode=0o700)
        for number in range(50):
            (victim / f"secret{number}").touch()
        folder = RunDir(str(open_folder), "a" * 32, 1)
        outputs = Path(folder.work, "outputs")
        outputs.mkdir(parents=True)
        for number in range(8):
            (outputs / f"d{number}").mkdir()
            (outputs / f"d{number}" / "mine").touch()
        as_owned(open_folder)

        def exchange() -> None:
            for number in range(8):
                mine, aside = outputs / f"d{number}", outputs / f"x{number}"
                mine.rename(aside)
                mine.symlink_to(victim)
                mine.unlink()
                aside.rename(mine)

        told: list[str] = []
        with hostile_process(nobody(), exchange):
            for _ in range(ROUNDS):
                told += [path for shown in output_files(folder, told.append) for path in shown]
        assert [name for name in told if "secret" in name] == []

    def test_removing_a_folder_never_removes_what_a_link_in_it_leads_to(
        self, tmp_path: Path, open_folder: Path
    ) -> None:
        victim = tmp_path / "victim"
        (victim / "inner").mkdir(parents=True)
        for number in range(10):
            (victim / "inner" / f"keep{number}").touch()
        tree = open_folder / "tree"

        def exchange() -> None:
            for number in range(8):
                try:
                    (tree / f"d{number}").rename(tree / f"x{number}")
                    (tree / f"d{number}").symlink_to(victim)
                    (tree / f"d{number}" / "inner").symlink_to(victim)
                except OSError:
                    continue

        with hostile_process(nobody(), exchange):
            for _ in range(ROUNDS):
                for number in range(8):
                    (tree / f"d{number}" / "inner").mkdir(parents=True)
                    (tree / f"d{number}" / "file").touch()
                as_owned(tree)
                removal.remove_tree(str(tree))
        assert len(list((victim / "inner").iterdir())) == 10
        assert owners(victim) == {0}
        assert not tree.exists()

    def test_a_folder_that_is_filled_all_the_time_is_removed_too(self, open_folder: Path) -> None:
        tree = open_folder / "tree"
        (tree / "in").mkdir(parents=True)
        as_owned(tree)

        def fill() -> None:
            try:
                (tree / "in" / os.urandom(8).hex()).mkdir()
                (tree / os.urandom(8).hex()).touch()
            except OSError:
                return

        with hostile_process(nobody(), fill):
            removal.remove_tree(str(tree))
        assert not tree.exists()


def as_owned(folder: Path) -> None:
    """`folder` and all in it belongs to the account of the runs."""
    for path in (*folder.rglob("*"), folder):
        os.chown(path, nobody().uid, nobody().gid, follow_symlinks=False)
    folder.chmod(0o755)


@needs_root
def test_a_tree_too_deep_for_any_path_is_removed(open_folder: Path) -> None:
    """Removing folder by folder from the top ran out of descriptors, and out of the interpreter's stack."""
    tree = open_folder / "tree"
    tree.mkdir()
    tree.chmod(0o777)

    def dig() -> None:
        os.chdir(tree)
        for _ in range(DEPTH):
            Path("deeper").mkdir(0o700)
            os.chdir("deeper")
        Path("file").touch()

    assert as_account(nobody(), dig) == 0
    removal.remove_tree(str(tree))
    assert not tree.exists()
