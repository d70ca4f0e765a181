"""`manage.py up`: prepares and starts everything that TrainHub needs on this machine, and prints its
address."""

from __future__ import annotations

import http.client
import json
import os
import ssl
import subprocess
import time
from collections.abc import Sequence

from trainhub import addresses, env, installation
from trainhub.files import write_secret
from trainhub.up import demo, preflight, stack, valkey
from trainhub.up.children import python
from trainhub.up.console import Stop, complain, say
from trainhub.up.separation import accounts, command, ownership
from trainhub.up.supervisor import Supervisor

FIRST_ANSWER_S = 60


USAGE = """\
usage: manage.py up [--demo]

Starts TrainHub on this machine and keeps it running: an embedded Valkey, the web server, the worker and a
node agent. Settings are environment variables, for example BIND=127.0.0.1:8100 DATA_DIR=/srv/trainhub;
docs/configuration.md lists them.
--demo shows it with simulated GPUs instead, on data of its own (docs/demo.md)."""
DEMO = ("--demo",)


def main(arguments: Sequence[str] = ()) -> int:
    as_demo = tuple(arguments) == DEMO
    agents_pipe = command.descriptor_of(list(arguments))
    if arguments and not as_demo and agents_pipe is None:
        say(USAGE)
        return 0 if arguments[0] in ("-h", "--help") else 2
    started = time.monotonic()
    try:
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
    _publish_services(own)
    if own is not None:
        supervisor.start(stack.valkey_child(own, lock))
    # Loading its code takes the web server longer than the preparation of a hub that was started before, so
    # both are done at once. It waits for the end of the preparation at this pipe.
    gate, opener = os.pipe()
    supervisor.start(stack.web(lock, gate))
    if own is not None and as_demo:
        # The past of the demo is published like everything else.
        own.wait()
    prepared = _prepare(*options)
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
    if not _first_answer(supervisor):
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


def _publish_services(own: valkey.Valkey | None) -> None:
    """Writes the addresses of the services for the children and for other manage.py commands."""
    redis = own.url if own else installation.redis_url()
    broker = installation.configured_broker_url() or installation.broker_of(redis)
    facts = {"redis_url": redis, "broker_url": broker, "hub_url": installation.bind().local_url}
    facts |= {"public_url": installation.public_url(), "api_url": installation.api_url()}
    tcp, certificate = installation.broker_bind(), installation.certificate()
    if own is not None and tcp is not None and not installation.configured_broker_url():
        host = tcp.host or "0.0.0.0"  # noqa: S104
        facts["node_broker_url"] = f"rediss://{addresses.bracketed(host)}:{tcp.port}/0"
        of_broker = installation.broker_certificate()
        if of_broker is not None and of_broker.ca is not None:
            facts["broker_ca"] = str(of_broker.ca)
    if certificate is not None and certificate.ca is not None:
        facts["hub_ca"] = str(certificate.ca)
    write_secret(installation.SERVICES_FILE, json.dumps(facts))


def _prepare(*options: str) -> dict[str, str]:
    """Runs `manage.py prepare`, shows the first password while it is known, and returns its results, such as
    `node`: the name of this machine's node."""
    process = subprocess.Popen(
        python("manage.py", "prepare", *options),
        cwd=installation.BASE_DIR,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "LOG_LEVEL": "WARNING"},
    )
    out, err = process.communicate()
    if process.returncode:
        last = err.strip().splitlines()[-1:] or [out.strip()]
        write_secret(installation.LOGS / "prepare.log", err)
        raise Stop(
            f"TrainHub's data could not be prepared: {last[0]} (see {installation.LOGS / 'prepare.log'})."
        )
    prepared = json.loads(out.strip().splitlines()[-1])
    for notice in prepared.pop("notices"):
        say(notice)
    if prepared["password"] and not options:  # a demo tells it each time
        say(f"The first account is admin with the password {prepared['password']} (shown this one time).")
    return dict(prepared)


def _first_answer(supervisor: Supervisor) -> bool:
    """Waits for the first answer over HTTP. Returns False if a stop was requested meanwhile."""
    deadline = time.monotonic() + FIRST_ANSWER_S
    while not supervisor.stop_requests:
        supervisor.tend()
        line = _line()
        try:
            line.request("GET", "/healthz")
            if line.getresponse().status == http.HTTPStatus.OK:
                return True
        except OSError:
            if time.monotonic() > deadline:
                raise Stop(
                    f"The web server did not answer within {FIRST_ANSWER_S} s; see "
                    f"{installation.LOGS / 'web.log'}."
                ) from None
        finally:
            line.close()
        supervisor.sleep(0.05)
    return False


def _line() -> http.client.HTTPConnection:
    """Returns a connection to our own web server, which has to show the expected certificate."""
    bind, certificate = installation.bind(), installation.certificate()
    host = bind.local_host.strip("[]")
    if certificate is None:
        return http.client.HTTPConnection(host, bind.port, timeout=2)
    trusted = ssl.create_default_context(cafile=certificate.ca or certificate.chain)
    if certificate.ca is None:
        # It names the hub as others know it, and may be no authority's own: this very certificate is what
        # must come.
        trusted.check_hostname = False
        trusted.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return http.client.HTTPSConnection(host, bind.port, timeout=2, context=trusted)
