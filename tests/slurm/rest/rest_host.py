"""A real slurmrestd on the controller's machine, behind a proxy that has its certificate, as sites run it."""

from __future__ import annotations

import os
import shutil
import signal
import ssl
import time

import httpx

from clusters.backends.slurm.commands import CALL_TIMEOUT_S
from clusters.backends.slurm.rest.http_calls import VERSION, RestCalls, RestServer
from clusters.backends.slurm.rest.rest_client import RestClient
from tests.hub import eventually
from tests.slurm.cluster import STARTED_S, SlurmCluster
from trainhub import certificates

PORT, OWN_PORT = 6843, 6820
# slurmrestd refuses to be root or the account of Slurm.
ACCOUNT = "daemon"
OBSERVER = "hub"
CONFIGURATION = """
daemon off; user root; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log;
events {{}}
http {{
  access_log off; {temporary}
  server {{
    listen {address}:{port} ssl;
    ssl_certificate {tls}/server.pem; ssl_certificate_key {tls}/server-key.pem;
    location / {{ proxy_pass http://127.0.0.1:{own_port}; client_max_body_size 8m; }}
  }}
}}
"""


class RestHost:
    def __init__(self, cluster: SlurmCluster) -> None:
        self.cluster = cluster
        self.machine = cluster.controller
        self.folder = cluster.folder / "rest"
        self.url = f"https://{self.machine.address}:{PORT}"

    @property
    def authority(self) -> str:
        return (self.folder / "tls" / "ca.pem").read_text()

    @property
    def server(self) -> RestServer:
        return RestServer(self.url, self.authority)

    def start(self) -> RestHost:
        certificates.ensure(self.folder / "tls", [self.machine.address])
        self.start_daemon()
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        temporary = "".join(f"{kind}_temp_path {self.folder}/{kind}; " for kind in kinds)
        path = self.folder / "nginx.conf"
        path.write_text(
            CONFIGURATION.format(
                folder=self.folder, temporary=temporary, address=self.machine.address, port=PORT,
                own_port=OWN_PORT, tls=self.folder / "tls",
            )
        )  # fmt: skip
        program = shutil.which("nginx", path="/usr/sbin:/usr/bin")
        assert program, "nginx is not installed; .ci/system-packages installs it"
        log = self.folder / "error.log"
        self.machine.spawn(self.folder / "out", program, "-e", str(log), "-c", str(path))
        eventually(self.answers, STARTED_S, "slurmrestd answers")
        return self

    def start_daemon(self, plugins: str = f"openapi/{VERSION},openapi/db{VERSION}") -> None:
        program = shutil.which("slurmrestd", path="/usr/sbin:/usr/bin")
        assert program, "slurmrestd is not installed; .ci/system-packages installs it"
        self.machine.spawn(
            self.folder / "slurmrestd.out",
            "setpriv", f"--reuid={ACCOUNT}", f"--regid={ACCOUNT}", "--clear-groups",
            program, "-s", plugins, "-a", "rest_auth/jwt", f"127.0.0.1:{OWN_PORT}",
            # Otherwise it refuses every token.
            **{**self.cluster.environment(), "SLURM_JWT": "daemon"},
        )  # fmt: skip

    def kill_daemon(self) -> None:
        os.kill(self.machine.pid_of("slurmrestd"), signal.SIGKILL)

    def restart_daemon(self, *plugins: str) -> None:
        self.kill_daemon()
        eventually(lambda: not self.answers(), STARTED_S, "slurmrestd is gone")
        self.start_daemon(*plugins)
        eventually(self.answers, STARTED_S, "slurmrestd answers again")

    def answers(self) -> bool:
        try:
            context = ssl.create_default_context(cadata=self.authority)
            with httpx.Client(verify=context) as client:
                return client.get(self.url).status_code == httpx.codes.UNAUTHORIZED
        except httpx.HTTPError:
            return False

    def token(self, account: str, lifespan_s: int = 3600) -> str:
        """As its owner would make it: `SLURM_JWT=…`."""
        return self.cluster.admin(
            "scontrol", "token", f"username={account}", f"lifespan={lifespan_s}"
        ).strip()

    def expired_token(self, account: str) -> str:
        token = self.token(account, 1)
        time.sleep(2)
        return token

    def client(self, account: str, token: str = "", max_s: float = CALL_TIMEOUT_S) -> RestClient:
        value = (token or self.token(account)).partition("=")[2]
        return RestClient(RestCalls(self.server, account, value, max_s))
