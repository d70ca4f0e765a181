"""The agent: one process per node that receives wake-ups, starts children, and reports to the hub.

It may be killed at any time: all that it knows comes from the files of the attempts."""

from __future__ import annotations

import logging
import shutil
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from trainhub_launch.report import StopOrder
from trainhub_launch.states import Phase
from trainhub_node import proc, records
from trainhub_node.attempts import attempt_list, crash_cleanup
from trainhub_node.attempts.attempt_list import Attempts, Key
from trainhub_node.attempts.disk_watch import DiskWatch
from trainhub_node.attempts.tracked_attempt import TrackedAttempt
from trainhub_node.attempts.watch import FileWatch
from trainhub_node.bootstrap_command import AGENT_WRAPPER
from trainhub_node.broker.broker_address import local_port
from trainhub_node.checkpoints.collector import CheckpointCollector
from trainhub_node.data.node_cache import DataKeeper, find_obstore, node_cache
from trainhub_node.data.peers.serving import PeerServing
from trainhub_node.data.shares import share_keeper
from trainhub_node.gpu.gpu_processes import OwnerFinder
from trainhub_node.gpu.nvml.nvml_library import Gpus
from trainhub_node.isolation import number_ledger
from trainhub_node.isolation.cgroup_place import discard_place
from trainhub_node.isolation.number_ledger import NumberLedger
from trainhub_node.launch import cache
from trainhub_node.launch.container_cleanup import ContainerCleaner
from trainhub_node.launch.folders import prepare_folders
from trainhub_node.launch.module_compiler import ModuleCompiler
from trainhub_node.launch.separation_trial import with_separation
from trainhub_node.launch.starter import Starter
from trainhub_node.link import wakeups
from trainhub_node.link.hub_client import HubClient
from trainhub_node.link.uplink import Uplink
from trainhub_node.outputs.uploads import OutputUploads
from trainhub_node.run_secrets import RunSecrets
from trainhub_node.rundir import RunDir
from trainhub_node.settings import NodeSettings
from trainhub_node.telemetry.buckets import Recorder
from trainhub_node.telemetry.heartbeat import network_address
from trainhub_node.telemetry.rank_reads import RankReads
from trainhub_node.telemetry.sampler import Sampler
from trainhub_node.telemetry.telemetry_queue import TelemetryQueue
from trainhub_node.upgrade.upgrader import Upgrader

log = logging.getLogger(__name__)
HOUSEKEEPING_S = 600.0
LOW_DISK_BYTES = 2 * 1024**3
# Both together are less than systemd waits for the agent (see systemd.UNIT).
REPORT_TIMEOUT_S, CLOSE_TIMEOUT_S = 5.0, 20.0


class Agent:
    """Owns the agent's threads and connects them: the sampler, the uplink, the listener and the starter."""

    def __init__(self, settings: NodeSettings) -> None:
        prepare_folders(settings)
        self.settings = settings = with_separation(settings)
        self._hub = HubClient(settings.hub_url, settings.token, settings.hub_ca)
        self._watch = FileWatch()
        self.attempts = Attempts(settings)
        self._numbers = NumberLedger(settings.folder / "uids", settings.uids[1:]) if settings.uids else None
        secrets = RunSecrets(self._hub)
        self._checkpoints = CheckpointCollector(self._hub, self.attempts, secrets)
        self._uploads = OutputUploads(
            self._hub, self.attempts, secrets, before=self._checkpoints.finish, on_change=self._watch.notify
        )
        self._containers = ContainerCleaner(settings, self.attempts)
        self._data = DataKeeper(settings, self.attempts, AGENT_WRAPPER)
        self._peers = _peer_serving(settings, self._hub)
        self._modules = ModuleCompiler(settings)
        self._gpus = Gpus(OwnerFinder(self.attempts.all).find, settings.gpus)
        recorder = Recorder()
        self._telemetry = TelemetryQueue(recorder, self._gpus.events, self._gpus.confirm)
        reads = RankReads(OwnerFinder(self.attempts.all).ranks)
        self._sampler = Sampler(
            settings, self._gpus, recorder, read_ranks=reads.read, on_sample=self._on_sample
        )
        self._crash_cleaner = crash_cleanup.CrashCleaner(settings.environments, self._watch.notify)
        self._upgrader = Upgrader(settings, self._hub, self._restart)
        self._uplink = self._make_uplink(secrets)
        self._starter = Starter(
            settings,
            self._hub,
            self.attempts,
            secrets,
            on_change=self._watch.notify,
            request_report=self._uplink.report_now,
            before_start=self._checkpoints.watch,
            numbers=self._numbers,
        )
        # Without the broker, and until the hub says where it is, reports bring the work.
        self._listener = wakeups.WakeupListener(self._fetch_config, self.wake, settings.hub_ca)
        self._disk = DiskWatch(self.attempts, settings.folder, settings.name, on_change=self._watch.notify)
        # `work_ended`: nothing that the agent has started is left. It still takes leave of broker and driver.
        self.is_restarting = False
        self._closing, self.work_ended, self._closed = (threading.Event() for _ in range(3))

    def _make_uplink(self, secrets: RunSecrets) -> Uplink:
        return Uplink(
            self._hub,
            self.attempts,
            self._watch,
            self,
            heartbeat=self._sampler.latest,
            telemetry=self._telemetry,
            advance=self._advance,
            mask_of=secrets.mask_of,
            upgrader=self._upgrader,
            on_settled=secrets.forget,
        )

    def run(self) -> None:
        """Runs until `close` is done. Attempts of an earlier agent are resumed first."""
        for folder in self.attempts.scan():
            self._starter.prepare(folder)
        # An earlier agent may have ended between storing the order and starting the child.
        for folder in self.attempts.all():
            if not Path(folder.child).exists():
                self._starter.prepare(folder)
        self._sampler.start()
        self._uplink.start()
        self._disk.start()
        self._checkpoints.start()
        self._uploads.start()
        self._peers.start()
        self._upgrader.start()
        threading.Thread(target=self._housekeeping, name="house", daemon=True).start()
        self._listener.start()
        self._closing.wait()
        self._uplink.join(REPORT_TIMEOUT_S)
        if not self._uplink.is_alive():
            self._watch.close()
        # The process ends when this returns, whatever other threads do then.
        if not self._closed.wait(CLOSE_TIMEOUT_S):
            log.warning(
                "Stopping takes more than %.0f s. The next agent does what is left, such as unmount shares",
                CLOSE_TIMEOUT_S,
            )

    def close(self) -> None:
        """Stops the agent. Training continues, and the next agent takes over."""
        self._closing.set()
        try:
            self._end_work()
            self.work_ended.set()
            self._listener.close()
            self._gpus.close()
        finally:
            self._closed.set()

    def _restart(self) -> None:
        """Has whoever called `run` start the agent anew, when that returns."""
        self.is_restarting = True
        threading.Thread(target=self.close, name="closing").start()

    def _end_work(self) -> None:
        self._listener.stop()
        self._upgrader.close()
        self._uplink.close()
        self._sampler.close()
        self._disk.close()
        self._starter.close()
        self._uploads.close()
        self._checkpoints.close()
        self._containers.close()
        self._data.close()
        self._peers.close()
        # Whoever has stopped this process may soon kill it.
        share_keeper.unmount_unused(self.settings)
        self._modules.close()
        self.attempts.close()
        # A child that still prepares its attempt makes its groups there later.
        if self.settings.cgroup is not None and not self.attempts.all():
            discard_place(self.settings.cgroup.parents)

    def _fetch_config(self) -> dict[str, Any]:
        config = self._hub.config()
        port = local_port(config["broker_url"] or "")
        # A broker behind the hub's own port cannot be refused: runs need the hub.
        is_own = port is not None and port != urlsplit(self.settings.hub_url).port
        self.attempts.close_ports((port,) if port is not None and is_own else ())
        return config

    def report_now(self) -> None:
        self._uplink.report_now()

    def wake(self, run: str, attempt: int) -> None:
        self._starter.wake(run, attempt)

    def resume(self, run: str, attempt: int) -> None:
        self._starter.resume(run, attempt)

    def start_daemon(self, key: Key, argv: tuple[str, ...]) -> None:
        folder = self.attempts.get(key)
        if folder is not None and not Path(folder.daemon).exists():
            records.write(folder.daemon, {"argv": list(argv)}, patient=False)
            attempt_list.wake_child(folder)

    def stop(self, order: StopOrder) -> None:
        folder = self.attempts.get((order.run, order.attempt))
        if folder is not None and attempt_list.request_stop(folder, order.why, order.grace_s):
            log.info("Run %s, attempt %d is requested to stop: %s", order.run, order.attempt, order.why)
            attempt_list.wake_child(folder)

    def collect(self, key: Key, number: int, name: str) -> None:
        self._checkpoints.collect(key, number, name)

    def settle(self, key: Key) -> None:
        self.attempts.settle(key)

    def _advance(self, tracked: TrackedAttempt) -> None:
        """Does the next step of an attempt, depending on its state."""
        state = tracked.state
        if Phase.DONE in state.agent()["phase_at"]:
            return
        child = state.child()
        if state.is_running:
            self._modules.submit(tracked.rundir.key)
            self._data.note_start(tracked.rundir)
        if tracked.lacks_secrets:
            self._starter.refetch_secrets(tracked.rundir)
        if state.is_over:
            self._starter.reap(tracked.rundir)
            self._uploads.submit(tracked.rundir)
            self._containers.submit(tracked.rundir)
            self._data.note_end(tracked.rundir)
        elif (
            child is not None
            and not proc.is_alive(child["pid"], child["identity"])
            and not _has_ended(tracked.rundir)
        ):
            self._crash_cleaner.submit(tracked.rundir)
        elif child is None:
            self._starter.check(tracked.rundir)
        elif state.is_ready and not state.has_ready_ports:
            self._starter.reserve_ports(tracked.rundir)

    def _on_sample(self) -> None:
        if self._telemetry.is_due:
            self._watch.notify()

    def _has_folder(self, key: Key) -> bool:
        return Path(self.attempts.folder(*key).path).exists()

    def _housekeeping(self) -> None:
        try:
            cache.remove_set_aside(self.settings)
        except OSError:
            log.exception("Unused environments could not be removed; the next start tries again")
        self._containers.sweep()
        self._data.sweep()
        share_keeper.unmount_idle(self.settings)
        self._modules.sweep()
        while not self._closing.wait(HOUSEKEEPING_S):
            try:
                self._data.sweep()
                free = shutil.disk_usage(self.settings.folder).free
                self.attempts.discard_old(
                    now=time.time(), retention_s=0 if free < LOW_DISK_BYTES else attempt_list.RETENTION_S
                )
                cache.trim(self.settings)
                self.attempts.refresh_rules()
                self._containers.sweep()
                share_keeper.unmount_idle(self.settings)
                self._containers.remove_images(time.time())
                self._modules.sweep()
                if self._numbers is not None:
                    self._numbers.sweep(self._has_folder, number_ledger.owners())
            except OSError:
                log.exception("Old files could not be removed")


def _peer_serving(settings: NodeSettings, hub: HubClient) -> PeerServing:
    return PeerServing(
        node_cache(settings),
        hub,
        settings.peer_port if find_obstore() else None,
        AGENT_WRAPPER,
        lambda: network_address(settings)[0],
    )


def _has_ended(folder: RunDir) -> bool:
    """Returns whether the child recorded its end. The state is read again, because a child that was found
    dead may have written its last record just before."""
    state = attempt_list.read_state(folder)
    return bool(state and state.get("ended"))
