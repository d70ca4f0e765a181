from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.node.builders import order, process, script
from tests.node.hub import FakeHub
from trainhub_node.agent import Agent
from trainhub_node.link.hub_client import UPLOAD_CHUNK_BYTES
from trainhub_node.rundir import RunDir


def outputs(hub: FakeHub, agent: Agent, code: str) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """What a script that runs `code` leaves at the hub: files by path, and the warnings."""
    key = hub.give(script(hub, code))
    fact = hub.wait_done(key)
    assert (fact.members[0].exit_code, fact.error) == (0, "")
    return {file.path: hub.output(key, file.path) for file in fact.outputs}, fact.warnings


class TestFiles:
    def test_arrive_with_their_paths_and_bytes(self, hub: FakeHub, agent: Agent) -> None:
        code = (
            "import os\nos.makedirs('outputs/a/b')\nopen('outputs/a/b/c.bin', "
            "'wb').write(bytes(range(256)))\n"
            "open('outputs/empty', 'w')\nopen('outputs/\u00fcml\u00e4ut', "
            "'w').write('x')\nopen('logs/own.txt', 'w').write('y')\n"
            "open('not_saved', 'w').write('z')\n"
        )

        files, warnings = outputs(hub, agent, code)

        assert files == {
            "a/b/c.bin": bytes(range(256)),
            "empty": b"",
            "\u00fcml\u00e4ut": b"x",
            "logs/own.txt": b"y",
        }
        assert warnings == ()

    def test_large_ones_travel_in_chunks(self, hub: FakeHub, agent: Agent) -> None:
        size = 2 * UPLOAD_CHUNK_BYTES + 5

        files, _ = outputs(hub, agent, f"open('outputs/model', 'wb').write(b'ab' * {size // 2} + b'c')")

        assert len(files["model"]) == size
        assert hub.chunk_sizes == [UPLOAD_CHUNK_BYTES, UPLOAD_CHUNK_BYTES, 5]

    def test_go_on_where_an_earlier_try_left_off(self, hub: FakeHub, agent: Agent) -> None:
        data = b"0123456789" * 1000
        hub.parts[hashlib.sha256(data).hexdigest()] += data[:4000]

        files, _ = outputs(hub, agent, "open('outputs/model', 'wb').write(b'0123456789' * 1000)")

        assert files["model"] == data
        assert hub.chunk_sizes == [6000]

    def test_what_the_hub_has_already_is_not_sent(self, hub: FakeHub, agent: Agent) -> None:
        hub.store(b"same")

        files, _ = outputs(hub, agent, "open('outputs/model', 'wb').write(b'same')")

        assert files == {"model": b"same"}
        assert hub.chunk_sizes == []

    def test_are_saved_of_failed_runs_too(self, hub: FakeHub, agent: Agent) -> None:
        key = hub.give(script(hub, "open('outputs/checkpoint', 'w').write('half')\nraise SystemExit(1)"))

        hub.wait_done(key)

        assert hub.output(key, "checkpoint") == b"half"

    def test_wait_for_a_hub_that_is_away(self, hub: FakeHub, agent: Agent) -> None:
        code = (
            "import os, time\nprint('up', flush=True)\nwhile not os.path.exists('go'): time.sleep(0.01)\n"
            "open('outputs/m', 'w').write('w')"
        )
        value = script(hub, code)
        key = hub.give(value)
        hub.wait_log(key, b"up")
        hub.available = False
        (agent.settings.attempts / f"{value.run}-1" / "work" / "go").touch()
        refused = hub.refused
        hub.wait(lambda: hub.refused > refused + 4)

        hub.available = True

        hub.wait_done(key)
        assert hub.output(key, "m") == b"w"


class TestTraps:
    def test_links_out_of_the_folder_are_left_out_with_a_warning(
        self, hub: FakeHub, agent: Agent, tmp_path: Path
    ) -> None:
        (tmp_path / "secret").write_text("do not take this")
        code = (
            f"import os\nos.symlink('{tmp_path}/secret', 'outputs/file')\nos.symlink('{tmp_path}', "
            "'outputs/folder')\n"
            "open('outputs/model', 'w').write('weights')\nos.symlink('model', "
            "'outputs/latest')\nos.mkfifo('outputs/pipe')\n"
            "os.symlink('nowhere', 'outputs/dangling')\nos.symlink('.', 'outputs/inner')\n"
            "os.symlink(os.path.abspath('outputs/model'), 'outputs/absolute')\n"
        )

        files, warnings = outputs(hub, agent, code)

        assert files == {"model": b"weights", "latest": b"weights", "absolute": b"weights"}
        assert sorted(warnings) == [
            "dangling is not among the outputs: No such file or directory.",
            "file is not among the outputs: it is a link out of the run's folder, or no file.",
            "folder is not among the outputs: it is a link out of the run's folder, or no file.",
            "outputs/inner is a link to a folder; what is in it is not saved.",
            "pipe is not among the outputs: it is a link out of the run's folder, or no file.",
        ]

    def test_an_outputs_folder_that_is_itself_a_link_is_left_out(
        self, hub: FakeHub, agent: Agent, tmp_path: Path
    ) -> None:
        (tmp_path / "secret").write_text("do not take this")

        files, warnings = outputs(
            hub, agent, f"import os\nos.rmdir('outputs')\nos.symlink('{tmp_path}', 'outputs')"
        )

        assert files == {}
        assert warnings == ("outputs is a link; nothing in it is saved.",)

    def test_a_file_in_the_place_of_the_outputs_folder_is_told(self, hub: FakeHub, agent: Agent) -> None:
        files, warnings = outputs(
            hub, agent, "import os\nos.rmdir('outputs')\nopen('outputs', 'w').write('x')"
        )

        assert files == {}
        assert warnings == ("outputs is not a folder; it is not saved.",)

    def test_names_that_are_not_text_are_left_out_with_a_warning(self, hub: FakeHub, agent: Agent) -> None:
        files, warnings = outputs(hub, agent, "open(b'outputs/\\xff', 'w').write('x')")

        assert files == {}
        assert warnings == ("'\\udcff' is not among the outputs: its name is too long or not plain text.",)


class TestFolder:
    def test_is_private_and_the_order_more_so(self, hub: FakeHub, agent: Agent) -> None:
        key = hub.give(script(hub, "print('x')"))
        hub.wait_done(key)
        folder = RunDir(str(agent.settings.attempts), *key)

        modes = {
            path: oct(Path(path).stat().st_mode & 0o777)
            for path in (folder.path, folder.order, folder.terms, folder.work)
        }

        assert modes == {
            folder.path: "0o700",
            folder.order: "0o600",
            folder.terms: "0o600",
            folder.work: "0o700",
        }

    @pytest.mark.parametrize("name", ["../out", "/abs", "a/../../b"])
    def test_a_snapshot_that_leads_out_is_refused(self, hub: FakeHub, agent: Agent, name: str) -> None:
        key = hub.give(order(hub, {name: "x"}, process(0, ("python", "train.py"))))

        fact = hub.wait_done(key)

        assert (fact.error_kind, fact.error) == ("snapshot", f"the path {name!r} leads out of it.")
        assert [member.state for member in fact.members] == ["waiting"]

    def test_a_snapshot_that_the_hub_does_not_have_is_said_so(self, hub: FakeHub, agent: Agent) -> None:
        value = script(hub, "print('x')")
        hub.blobs.clear()

        fact = hub.wait_done(hub.give(value))

        assert (fact.error_kind, fact.error) == ("snapshot", "There is no such snapshot.")
