"""What every start of TrainHub has in common: the addresses of services for others, the preparation of data,
and the wait for the first answer."""

from __future__ import annotations

import http.client
import json
import os
import ssl
import subprocess
import time

from trainhub import addresses, installation
from trainhub.files import write_secret
from trainhub.up import valkey
from trainhub.up.children import python
from trainhub.up.console import Stop, say
from trainhub.up.supervisor import Supervisor

FIRST_ANSWER_S = 60


def publish_services(own: valkey.Valkey | None) -> None:
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


def prepare_data(*options: str) -> dict[str, str]:
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
    # A demo tells it each time.
    if prepared["password"] and "--demo" not in options:
        say(f"The first account is admin with the password {prepared['password']} (shown this one time).")
    return dict(prepared)


def wait_for_answer(supervisor: Supervisor) -> bool:
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
