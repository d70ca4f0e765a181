from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from trainhub_node.rundir import RunDir
from trainhub_node.supervisor import openmpi, rsh
from trainhub_node.supervisor.gang import PreparationFailed

GOLDEN = Path(__file__).parent / "golden"
CALLS = ("open_mpi_4", "open_mpi_4_prefix", "open_mpi_4_profile", "open_mpi_5", "open_mpi_5_profile")
BARE = Path(rsh.__file__).parents[1] / "bootstrap.py"


def words(name: str) -> list[str]:
    """What that version of mpirun really gave to its remote shell after the host."""
    return list(json.loads((GOLDEN / f"{name}.json").read_text())["words"])


def argv(name: str) -> list[str]:
    return list(json.loads((GOLDEN / f"{name}.json").read_text())["argv"])


class TestParsing:
    @pytest.mark.parametrize("name", CALLS)
    def test_finds_the_daemon_and_its_arguments_and_no_more(self, name: str) -> None:
        assert rsh.daemon_call(words(name)) == argv(name)

    @pytest.mark.parametrize(
        "command",
        ["", "hostname", "'orted", "/bin/sh -c 'orted -mca ess env'", "echo my-orted", "PATH=/x/orted:$PATH"],
    )
    def test_finds_none_in_anything_else(self, command: str) -> None:
        assert rsh.daemon_call(command.split(" ")) == []


class TestArguments:
    @pytest.mark.parametrize("name", CALLS)
    def test_of_both_versions_are_taken_without_what_is_for_the_node_to_say(self, name: str) -> None:
        accepted = openmpi.daemon_argv(argv(name))

        assert accepted[0] == argv(name)[0]
        assert set(accepted) <= {*argv(name), *openmpi.FOREGROUND_OPTIONS[accepted[0]]}
        assert not {
            "plm_rsh_agent",
            "plm_ssh_agent",
            "trainhub-rsh",
            "oob_tcp_if_include",
            "--allow-run-as-root",
        } & set(accepted)
        assert {"orted": "orte_hnp_uri", "prted": "prte_hnp_uri"}[accepted[0]] in accepted
        assert accepted[1 : 1 + len(openmpi.FOREGROUND_OPTIONS[accepted[0]])] == list(
            openmpi.FOREGROUND_OPTIONS[accepted[0]]
        )

    @pytest.mark.parametrize(
        "name", ["plm_rsh_agent", "plm_ssh_agent", "orte_launch_agent", "prte_launch_agent"]
    )
    def test_that_would_run_another_program_are_dropped(self, name: str) -> None:
        assert openmpi.daemon_argv(["orted", "-mca", name, "/tmp/evil"]) == [
            "orted",
            *openmpi.FOREGROUND_OPTIONS["orted"],
        ]

    @pytest.mark.parametrize(
        "name", ["orte_fork_agent", "mca_base_component_path", "mca_base_param_files", "orte_xterm", ""]
    )
    def test_that_are_not_known_are_refused_by_name(self, name: str) -> None:
        with pytest.raises(
            PreparationFailed, match=f"the parameter '{name}', which this node does not allow"
        ):
            openmpi.daemon_argv(["prted", "--prtemca", name, "x"])

    @pytest.mark.parametrize("option", ["--prefix", "-x", "--tree-spawn", "; id"])
    def test_options_that_no_call_has_are_refused(self, option: str) -> None:
        with pytest.raises(PreparationFailed, match="which this node does not allow"):
            openmpi.daemon_argv(["orted", option])

    @pytest.mark.parametrize("requests", [[], ["/bin/sh"], ["sh", "-c", "id"]])
    def test_other_programs_are_refused(self, requests: list[str]) -> None:
        with pytest.raises(PreparationFailed, match="none of Open MPI 4 or 5"):
            openmpi.daemon_argv(requests)


class TestProgram:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> RunDir:
        (tmp_path / ("a" * 32 + "-1") / "ranks").mkdir(parents=True)
        return RunDir(str(tmp_path), "a" * 32, 1)

    def start(self, folder: RunDir, *call: str) -> list[str]:
        return [sys.executable, "-I", "-S", str(BARE), "rsh", folder.path, *call]

    def test_writes_the_call_down_and_stays_until_its_parent_is_gone(self, folder: RunDir) -> None:
        # A shell between us, as mpirun is between the child and this one.
        code = '"$@" & echo $!; read line; exit 0'
        parent = subprocess.Popen(
            ["sh", "-c", code, "sh", *self.start(folder, "10.0.0.2", *words("open_mpi_5"))],
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert parent.stdout is not None
        fd = os.pidfd_open(pid := int(parent.stdout.readline()))
        written = Path(folder.daemon_call("10.0.0.2"))
        while not written.exists():
            assert not select.select([fd], [], [], 0.01)[0], "it ended without a message"

        os.kill(pid, signal.SIGTERM)
        assert not select.select([fd], [], [], 0.3)[0], "SIGTERM must not look like a daemon that failed"
        parent.communicate("\n", timeout=10)

        assert select.select([fd], [], [], 10)[0], "it outlives mpirun"
        os.close(fd)
        assert json.loads(written.read_text()) == {"host": "10.0.0.2", "argv": argv("open_mpi_5")}

    @pytest.mark.parametrize(
        ("host", "call"), [("../../x", "orted"), ("", "orted"), ("10.0.0.2", "rm -rf /")]
    )
    def test_refuses_what_is_no_call(self, folder: RunDir, host: str, call: str) -> None:
        done = subprocess.run(
            self.start(folder, host, call), capture_output=True, text=True, timeout=30, check=False
        )

        assert done.returncode == rsh.USAGE_ERROR
        assert done.stderr.startswith("trainhub: not a call for an Open MPI daemon: ")
        assert list(Path(folder.ranks).iterdir()) == []
