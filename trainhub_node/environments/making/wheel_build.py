"""Builds wheels from source distributions, checks that they work, and uploads them.

What is fetched is locked by its hash, and comes from the hub. Where the agent is root, code of packages runs
as a throwaway account, which can write to one folder of the build and has no network: before anything of
its result is used, all its processes are killed. Else it runs in namespaces of its own, as every build.
Everything is below one folder, which the next start of the agent removes if this process dies."""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager

from trainhub_node.environments import builder_account, interpreter, uv_install
from trainhub_node.environments.build_process import BuildProcess
from trainhub_node.environments.code_limits import CodeLimits
from trainhub_node.environments.making import build_tools, source_download, wheel_check
from trainhub_node.environments.making.hub_upload import HubUpload
from trainhub_node.supervisor import separation
from trainhub_node.supervisor.gang import Gang, PreparationFailed
from trainhub_node.untrusted import removal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

SHOWN_LINES = 6


def make(gang: Gang) -> None:
    """Builds and uploads the wheels of the order. Raises PreparationFailed, and StopRequested."""
    if not gang.terms.get("uv"):
        raise PreparationFailed(
            "environment", "This node has no uv; install it beside its agent (pip install uv)."
        )
    for package in gang.order["make"]["packages"]:
        build_tools.check_programs(package)
    environments = gang.terms["environments"]
    lock = os.open(f"{environments}/{gang.folder.run}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    folder = interpreter.sibling(f"{environments}/{gang.folder.run}", interpreter.SCRATCH)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        removal.remove_tree(folder)
        os.mkdir(folder)
        os.chmod(folder, 0o711)  # noqa: S103 - the accounts that install and build pass through
        _WheelBuild(gang, folder).run()
    except OSError as error:
        raise PreparationFailed(
            "environment", f"The wheels could not be built on this node: {error.strerror or error}."
        ) from error
    finally:
        removal.remove_tree(folder)
        os.unlink(f"{environments}/{gang.folder.run}.lock")
        os.close(lock)


class _WheelBuild:
    """`folder`: everything of the build."""

    def __init__(self, gang: Gang, folder: str) -> None:
        self._gang = gang
        self._folder = folder
        self._make: dict[str, Any] = gang.order["make"]
        self._packages: list[dict[str, Any]] = list(self._make["packages"])
        self._python = str(gang.order["environment"]["python"] or gang.terms["python"])

    def run(self) -> None:
        names = ", ".join(f"{package['name']} {package['version']}" for package in self._packages)
        self._gang.log(f"Building {names} from source.")
        self._install("build", self._make["build_lock"])
        os.mkdir(f"{self._folder}/sources")
        os.chmod(f"{self._folder}/sources", 0o711)  # noqa: S103 - the builder passes through
        sources = {
            package["name"]: source_download.fetch_source(self._gang, package, f"{self._folder}/sources")
            for package in self._packages
        }
        self._install("check", self._make["lock"])
        with self._builder() as process:
            for package in self._packages:
                self._build(process, package, sources[package["name"]])
            self._check(process)
        # No process of the builder is left; what it has written is only read.
        self._upload()

    def _install(self, name: str, lock: str) -> None:
        """Makes the environment in which packages are built, or the one in which the wheels are checked."""
        spec = {**self._gang.order["environment"], "lock": lock}
        uv_install.install(self._gang, spec, self._python, f"{self._folder}/{name}", is_for_runs=False)

    @contextmanager
    def _builder(self) -> Iterator[BuildProcess]:
        """Yields what runs programs that may do as they like in the folder `work`; ends all of them."""
        work = self._work
        account = self._gang.terms["account"]
        # An agent that is not root cannot make a network without rights that builds must not have.
        can_separate = account is not None and bool(
            (self._gang.terms.get("isolation") or {}).get("namespaces")
        )
        limits = CodeLimits(float(self._make["timeout_s"]), has_network=not can_separate)
        os.mkdir(work, 0o700)
        for name in ("wheels", "home"):
            os.mkdir(f"{work}/{name}", 0o700)
        environment = f"{self._folder}/build"
        if account is None:
            readable = [f"{self._folder}/{name}" for name in ("build", "sources", "check")]
            spaces = separation.separate_build(self._gang, f"{work}/wheels", work, readable)
            process = BuildProcess(
                self._gang, environment, work, builder=None, namespaces=spaces, limits=limits
            )
            self._write_compilers(process)
            try:
                yield process
            finally:
                if spaces is not None:
                    spaces.end()
            return
        with builder_account.reserve_uid(self._gang.terms["environments"], excluded=account["uid"]) as number:
            process = BuildProcess(self._gang, environment, work, builder=number, limits=limits)
            self._write_compilers(process)
            for path in (work, *(entry.path for entry in os.scandir(work))):
                os.chown(path, number, number)
            try:
                yield process
            finally:
                builder_account.kill_processes(number)

    def _write_compilers(self, process: BuildProcess) -> None:
        for package in self._packages:
            build_tools.write_compiler(process, package)

    @property
    def _work(self) -> str:
        return f"{self._folder}/work"

    def _build(self, process: BuildProcess, package: dict[str, Any], source: str) -> None:
        title = f"{package['name']} {package['version']}"
        argv = [
            *(self._gang.terms["uv"], "build", "--wheel", "--no-build-isolation", "--python"),
            *(f"{self._folder}/build/bin/python", "--out-dir", f"{self._work}/wheels", source),
        ]
        variables = build_tools.build_variables(package, f"{self._folder}/build", self._work)
        if process.call(argv, variables) != 0:
            raise PreparationFailed("environment", f"{title} could not be built: {self._last_lines(process)}")

    def _check(self, process: BuildProcess) -> None:
        self._gang.log("Checking what was built.")
        wheels = wheel_check.find_wheels(f"{self._work}/wheels")
        site = f"{self._work}/site"
        argv = [
            *(self._gang.terms["uv"], "pip", "install", "--no-deps", "--no-index", "--offline"),
            *("--python", f"{self._folder}/check/bin/python", "--target", site, *wheels),
        ]
        variables = build_tools.uv_variables(self._work)
        if process.call(argv, variables) != 0:
            raise PreparationFailed(
                "environment", f"What was built cannot be installed: {self._last_lines(process)}"
            )
        for package in self._packages:
            for code in wheel_check.check_codes(package, site):
                argv = [f"{self._folder}/check/bin/python", "-c", code]
                if process.call(argv, {"PYTHONPATH": site, "HOME": f"{self._work}/home"}) != 0:
                    raise PreparationFailed(
                        "environment",
                        f"{package['name']} {package['version']} was built, but does not work: "
                        f"{self._last_lines(process)}",
                    )

    def _last_lines(self, process: BuildProcess) -> str:
        """Returns the lines that say why a program failed: those that are marked as errors, else the last
        ones."""
        lines = [line for line in process.tail() if self._folder not in line]
        errors = [line for line in lines if "error:" in line.lower()]
        return " | ".join((errors or lines or ["it wrote no message"])[-SHOWN_LINES:])

    def _upload(self) -> None:
        upload = HubUpload(self._gang)
        items = []
        for wheel in wheel_check.take_wheels(self._work, "wheels", self._folder):
            if wheel.size > int(self._make["max_bytes"]):
                raise PreparationFailed(
                    "environment",
                    f"{wheel.filename} has {wheel.size:,} bytes, and at most {self._make['max_bytes']:,} are "
                    "kept (MAX_ENVIRONMENT_BUILD_BYTES). Ask an operator to raise that.",
                )
            upload.put(wheel.path, wheel.sha256)
            items.append({"filename": wheel.filename, "sha256": wheel.sha256})
        upload.finish({"wheels": items})
        self._gang.log("The hub has the wheels.")
