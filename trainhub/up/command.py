"""`manage.py up`: everything that TrainHub needs on this machine, from nothing to the page it prints."""

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
    """`agents_pipe`: where root has started this process for the hub alone, the descriptor that root's agent
    waits at."""
    if as_demo:
        demo.check()
    if ownership.is_separate(installation.DATA_DIR):
        raise Stop(
            f"The hub on {installation.DATA_DIR} has an account of its own. Start it as root, with RUN_AS "
            "set as before."
        )
    preflight.prepare_folders()
    lock = preflight.lock()
    preflight.check_ports()
    preflight.check_certificate()
    notice = preflight.account_notice() if agents_pipe is None else ""
    notice += preflight.proxy_notice()
    preflight.make_secret_key()
    supervisor = Supervisor()
    try:
        _start(supervisor, lock, notice, started, as_demo, agents_pipe=agents_pipe)
        supervisor.keep()
        say(
            "Stopping the demo and all that it started."
            if as_demo
            else "Stopping. Training that runs goes on."
        )
    finally:
        supervisor.stop()
        if as_demo:
            demo.end_leftovers()
        installation.SERVICES_FILE.unlink(missing_ok=True)
    say("TrainHub has stopped.")


def _start(
    supervisor: Supervisor, lock: int, notice: str, started: float, as_demo: bool, *, agents_pipe: int | None
) -> None:
    own = None if installation.given_redis_url() else valkey.configured(installation.DATA_DIR)
    _publish_services(own)
    if own is not None:
        supervisor.start(stack.valkey_child(own, lock))
    prepared = _prepare(*(demo.preparation() if as_demo else ()))
    if own is not None:
        own.wait()
        _start_gateway(supervisor, own, lock)
    if supervisor.asked_to_stop:
        return
    if as_demo:
        children = [*stack.services(lock), *demo.children(prepared)]
    else:
        children = stack.children(prepared["node"], lock) if agents_pipe is None else stack.services(lock)
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
            f"Add a machine: {installation.public_url()}/clusters/add/ or `manage.py node token NAME` tell "
            "the command to run there."
        )
    say(f"Data and logs are in {installation.DATA_DIR}. Ctrl-C stops TrainHub and leaves training running.")


def _start_gateway(supervisor: Supervisor, own: valkey.Valkey, lock: int) -> None:
    """Let nodes on other machines in, where the hub is open to them and its own Valkey is the broker."""
    bind, shown = installation.broker_bind(), installation.broker_certificate()
    if bind is not None and shown is not None and not installation.given_broker_url():
        supervisor.start(stack.gateway_child(own, bind, shown, lock))


def _publish_services(own: valkey.Valkey | None) -> None:
    """Tell the children, and other manage.py commands, where the services are."""
    redis = own.url if own else installation.redis_url()
    broker = installation.given_broker_url() or installation.broker_of(redis)
    facts = {"redis_url": redis, "broker_url": broker, "hub_url": installation.bind().local_url}
    facts |= {"public_url": installation.public_url(), "api_url": installation.api_url()}
    tcp, shown = installation.broker_bind(), installation.certificate()
    if own is not None and tcp is not None and not installation.given_broker_url():
        facts["node_broker_url"] = f"rediss://{addresses.bracketed(tcp.host or '0.0.0.0')}:{tcp.port}/0"  # noqa: S104
        of_broker = installation.broker_certificate()
        if of_broker is not None and of_broker.ca is not None:
            facts["broker_ca"] = str(of_broker.ca)
    if shown is not None and shown.ca is not None:
        facts["hub_ca"] = str(shown.ca)
    write_secret(installation.SERVICES_FILE, json.dumps(facts))


def _prepare(*options: str) -> dict[str, str]:
    """Run `manage.py prepare`, show the first password while it is known, and return what it tells, such as
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
            f"What TrainHub keeps could not be made ready: {last[0]} (see "
            f"{installation.LOGS / 'prepare.log'})."
        )
    prepared = json.loads(out.strip().splitlines()[-1])
    for notice in prepared.pop("notices"):
        say(notice)
    if prepared["password"] and not options:  # a demo tells it each time
        say(f"The first account is admin with the password {prepared['password']} (shown this one time).")
    return dict(prepared)


def _first_answer(supervisor: Supervisor) -> bool:
    """Wait for the first answer over HTTP; False when asked to stop meanwhile."""
    deadline = time.monotonic() + FIRST_ANSWER_S
    while not supervisor.asked_to_stop:
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
    """To our own web server, which has to show the certificate that it was given."""
    bind, shown = installation.bind(), installation.certificate()
    host = bind.local_host.strip("[]")
    if shown is None:
        return http.client.HTTPConnection(host, bind.port, timeout=2)
    trusted = ssl.create_default_context(cafile=shown.ca or shown.chain)
    if shown.ca is None:
        # It names the hub as others know it, and may be no authority's own: this very certificate is what
        # must come.
        trusted.check_hostname = False
        trusted.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return http.client.HTTPSConnection(host, bind.port, timeout=2, context=trusted)
