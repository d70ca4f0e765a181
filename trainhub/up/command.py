"""`manage.py up`: prepares and starts everything that TrainHub needs on this machine, and prints its
address."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from trainhub import env, installation
from trainhub.up import demo, further_server, preflight, stack, valkey
from trainhub.up.console import Stop, complain, say
from trainhub.up.first_steps import prepare_data, publish_services, wait_for_answer
from trainhub.up.separation import accounts, command, ownership
from trainhub.up.supervisor import Supervisor

USAGE = """\
usage: manage.py up [--demo | --only web | --only worker | --only web,worker]

Starts TrainHub on this machine and keeps it running: an embedded Valkey, the web server, the worker and a
node agent. Settings are environment variables, for example BIND=127.0.0.1:8100 DATA_DIR=/srv/trainhub;
docs/configuration.md lists them.
--demo shows it with simulated GPUs instead, on data of its own (docs/demo.md).
--only adds a server to a hub that has several (docs/servers.md)."""
DEMO = ("--demo",)


def main(arguments: Sequence[str] = ()) -> int:
    as_demo = tuple(arguments) == DEMO
    parts = further_server.parts_of(arguments)
    agents_pipe = command.descriptor_of(list(arguments))
    if arguments and not as_demo and not parts and agents_pipe is None:
        say(USAGE)
        return 0 if arguments[0] in ("-h", "--help") else 2
    started = time.monotonic()
    try:
        if parts:
            further_server.run_parts(parts, started)
            return 0
        if accounts.is_separated():
            return command.run()
        _run(started, as_demo, agents_pipe)
    except (Stop, env.EnvError) as reason:
        complain(f"TrainHub stopped: {reason}")
        return 1
    return 0


def _run(started: float, as_demo: bool, agents_pipe: int | None) -> None:
    """Runs TrainHub until a signal. `agents_pipe`: if root has started this process for the hub only, the
    descriptor at which root waits for the facts of its agent."""
    if as_demo:
        demo.check()
    if ownership.is_separate(installation.DATA_DIR):
        raise Stop(
            f"The hub on {installation.DATA_DIR} has an account of its own. Start it as root, with RUN_AS "
            "set as before."
        )
    preflight.prepare_folders()
    lock = preflight.lock()
    preflight.check_restored()
    preflight.check_moved()
    preflight.check_ports()
    further_server.check_services()
    preflight.check_certificate()
    notice = preflight.account_notice(as_demo=as_demo) if agents_pipe is None else ""
    notice += preflight.package_notice() + preflight.proxy_notice()
    preflight.make_secret_key()
    supervisor = Supervisor()
    try:
        _start(supervisor, lock, notice, started, as_demo, agents_pipe=agents_pipe)
        supervisor.keep()
        say(
            "Stopping the demo and everything that it started."
            if as_demo
            else "Stopping. Active runs continue."
        )
    finally:
        supervisor.stop()
        if as_demo:
            demo.end_leftovers()
        installation.SERVICES_FILE.unlink(missing_ok=True)
    if as_demo and demo.remove_if_asked():
        say(f"The demo is removed, with its folder {installation.DATA_DIR}.")
    say("TrainHub has stopped.")


def _start(
    supervisor: Supervisor, lock: int, notice: str, started: float, as_demo: bool, *, agents_pipe: int | None
) -> None:
    # Before the web server starts, which has further pages in the folder of a demo.
    options = demo.preparation() if as_demo else ()
    own = None if installation.configured_redis_url() else valkey.configured(installation.DATA_DIR)
    publish_services(own)
    if own is not None:
        supervisor.start(stack.valkey_child(own, lock))
    # Loading its code takes the web server longer than the preparation of a hub that was started before, so
    # both are done at once. It waits for the end of the preparation at this pipe.
    gate, opener = os.pipe()
    supervisor.start(stack.web(lock, gate))
    if own is not None and as_demo:
        # The past of the demo is published like everything else.
        own.wait()
    prepared = prepare_data(*options)
    if own is not None:
        own.wait()
        # The gateway connects to Valkey for each client, so it starts only once Valkey answers.
        _start_gateway(supervisor, own, lock)
    if supervisor.stop_requests:
        return
    os.close(opener)
    if as_demo:
        children = [stack.worker(), *demo.demo_children(prepared)]
    else:
        children = stack.children(prepared["node"]) if agents_pipe is None else [stack.worker()]
    for child in children:
        supervisor.start(child)
    if agents_pipe is not None:
        command.tell_agent(agents_pipe, prepared["node"])
    if not wait_for_answer(supervisor):
        return
    say(f"TrainHub is ready after {time.monotonic() - started:.1f} s: {installation.public_url()}")
    if installation.is_for_browsers_only(installation.public_url()):
        say(f"Programs reach it at {installation.api_url()}.")
    if notice:
        say(notice.strip())
    if as_demo:
        say(demo.notice())
        return
    if installation.is_open():
        say(
            f"Add a machine: {installation.public_url()}/clusters/add/ or `manage.py node token NAME` show "
            "the command to run there."
        )
    say(f"Data and logs are in {installation.DATA_DIR}. Ctrl-C stops TrainHub and leaves training running.")


def _start_gateway(supervisor: Supervisor, own: valkey.Valkey, lock: int) -> None:
    """Starts the broker gateway if the hub is open to other machines and its own Valkey is the broker."""
    bind, certificate = installation.broker_bind(), installation.broker_certificate()
    if bind is not None and certificate is not None and not installation.configured_broker_url():
        supervisor.start(stack.gateway_child(own, bind, certificate, lock))
