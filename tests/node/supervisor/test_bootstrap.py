from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SITES = Path(__file__).resolve().parents[3] / "trainhub_node" / "sitecustomize"
COSTLY = {
    "re",
    "json",
    "enum",
    "pathlib",
    "subprocess",
    "dataclasses",
    "ctypes",
    "threading",
    "logging",
    "typing",
    "shutil",
}


def run(*argv: str, path: str = "", cwd: Path | None = None) -> str:
    env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": path} if path else {"PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, *argv], capture_output=True, text=True, env=env, cwd=cwd, timeout=30, check=True
    )
    assert done.stderr == ""
    return done.stdout.strip()


class TestWayToTheFirstLine:
    @pytest.mark.parametrize("module", ["supervisor.child", "supervisor.rank"])
    def test_imports_nothing_that_takes_milliseconds(self, module: str) -> None:
        root = SITES.parent.parent
        code = (
            f"import sys; sys.path.append({str(root)!r}); import trainhub_node.{module}; print(' "
            "'.join(sys.modules))"
        )

        loaded = set(run("-I", "-S", "-c", code).split())

        assert loaded & COSTLY == set()


class TestSiteCustomize:
    def test_runs_the_one_that_it_stands_before(self, tmp_path: Path) -> None:
        (tmp_path / "sitecustomize.py").write_text("import sys\nsys.theirs = __file__\n")

        message = run(
            "-c",
            "import sys, sitecustomize; print(sys.theirs, sitecustomize.__file__)",
            path=f"{SITES}:{tmp_path}",
        )

        assert message == f"{tmp_path}/sitecustomize.py {tmp_path}/sitecustomize.py"

    def test_an_error_in_theirs_is_shown_as_ever_and_the_program_runs(self, tmp_path: Path) -> None:
        (tmp_path / "sitecustomize.py").write_text("import no_such_module\n")

        done = subprocess.run(
            [sys.executable, "-c", "print('ran')"],
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
            env={"PYTHONPATH": f"{SITES}:{tmp_path}"},
        )

        assert done.stdout == "ran\n"
        assert "no_such_module" in done.stderr

    def test_without_another_one_nothing_is_said(self) -> None:
        code = "import sys; sys.path.insert(0, sys.argv[1]); import sitecustomize; print('ok')"

        assert run("-S", "-c", code, str(SITES)) == "ok"

    def test_a_program_without_torch_does_not_wait(self) -> None:
        code = (
            "import atexit, time; t = time.monotonic(); atexit._run_exitfuncs(); print(time.monotonic() "
            "- t < 0.05)"
        )

        assert run("-c", code, path=str(SITES)) == "True"

    def test_one_with_torch_waits_after_everything_else(self) -> None:
        code = (
            "import atexit, sys, time, types\nsys.modules['torch.distributed'] = "
            "types.ModuleType('torch.distributed')\n"
            "atexit.register(lambda: print('theirs'))\nt = time.monotonic()\natexit._run_exitfuncs()\n"
            "print(time.monotonic() - t >= 0.1)"
        )

        assert run("-c", code, path=str(SITES)).split() == ["theirs", "True"]

    def test_the_path_is_as_it_was(self, tmp_path: Path) -> None:
        code = "import sys; print([p for p in sys.path[1:3]])"

        assert run("-c", code, path=f"{SITES}:{tmp_path}") == str([str(SITES), str(tmp_path)])
