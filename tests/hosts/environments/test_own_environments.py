"""Environments of each kind on two hosts that reach nothing but the hub: both make the environment, and a
process on each trains the same model of the digits."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.environments.conda_channel import CondaChannel
from tests.environments.images.image_registry import LOGIN, PASSWORD, USER, ImageRegistry
from tests.environments.package_index import PackageIndex
from tests.environments.test_journey import described
from tests.hosts.bench import CLUSTER, Hosts
from tests.hosts.environments.container_hosts import lonely_hosts
from tests.node.containers.images import NAME, add_open_mpi, has_podman, make_root, private_podman
from trainhub_launch.log_names import ENVIRONMENT_LOG

pytestmark = [
    pytest.mark.hosts,
    pytest.mark.slow,
    pytest.mark.skipif(not has_podman(), reason="needs root, podman and catatonit"),
]
DIGITS = "lib/python3.11/site-packages/sklearn/datasets/data/digits.csv.gz"
# Logistic regression on 8 x 8 pixels. Nothing but the standard library and a package of the environment, so
# that no host installs much.
TRAIN = """
import json, math, os, pathlib, socket, sys, time
from tinylib import VERSION

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
print(f"rank {rank} of {size} on {socket.gethostname()} with tinylib {VERSION} in {sys.prefix}", flush=True)
rows = [[int(item) for item in line.split(",")] for line in open("digits.csv")]
samples = [([pixel / 16 for pixel in row[:64]] + [1.0], row[64]) for row in rows]
held_out, mine = samples[:100], samples[100:][rank::size]

if rank == 0:
    with socket.create_server(("", address[1])) as server:
        peer, _ = server.accept()
else:
    while True:
        try:
            peer = socket.create_connection(address)
            break
        except OSError:
            time.sleep(0.1)
reader, writer = peer.makefile("r"), peer.makefile("w")


def average(values):
    writer.write(json.dumps(values) + chr(10))
    writer.flush()
    return [(own + other) / size for own, other in zip(values, json.loads(reader.readline()))]


def probabilities(weights, pixels):
    scores = [sum(w * p for w, p in zip(weights[65 * k : 65 * k + 65], pixels)) for k in range(10)]
    powers = [math.exp(score - max(scores)) for score in scores]
    return [power / sum(powers) for power in powers]


weights = [0.0] * 650
for epoch in range(15):
    gradient = [0.0] * 650
    for pixels, label in mine:
        for k, probability in enumerate(probabilities(weights, pixels)):
            error = (probability - (k == label)) / len(mine)
            for place, pixel in enumerate(pixels):
                gradient[65 * k + place] += error * pixel
    weights = [weight - 0.5 * slope for weight, slope in zip(weights, average(gradient))]
assert average(weights) == weights, "the processes disagree about the weights"
results = [probabilities(weights, pixels) for pixels, _ in held_out]
hits = sum(result.index(max(result)) == label for result, (_, label) in zip(results, held_out))
print(f"accuracy {hits} %", flush=True)
if rank == 0:
    pathlib.Path("outputs").mkdir(exist_ok=True)
    pathlib.Path("outputs/model.json").write_text(json.dumps(weights))
assert hits >= 70
"""
# A rank of MPI, also where the image has no library for it.
RANK = """
import os, socket
rank, size = os.environ["OMPI_COMM_WORLD_RANK"], os.environ["OMPI_COMM_WORLD_SIZE"]
print(f"rank {rank} of {size} on {socket.gethostname()} {os.environ['GREETING']}")
"""


@pytest.fixture(scope="module")
def lonely(hosts: Hosts) -> Iterator[Hosts]:
    with lonely_hosts(hosts) as changed:
        yield changed


@dataclass(frozen=True)
class Sources:
    """What only the machine of the hub reaches: a package index, a registry of images and `folder`."""

    hosts: Hosts
    index: PackageIndex
    registry: ImageRegistry
    folder: Path
    locked: set[str] = field(default_factory=set)

    def environment(self, kind: str) -> str:
        """Returns the name of the environment of this kind, which is made on first use."""
        if kind not in self.locked:
            KINDS[kind][0](self)
            self.locked.add(kind)
        return f"own-{kind}"

    @property
    def requirements(self) -> list[str]:
        return [f"--index-url {self.index.url}", "tinylib"]

    def lock(self, kind: str, **source: object) -> None:
        """Makes the environment of this kind."""
        version = described(self.hosts.hub, {"name": f"own-{kind}", "kind": kind, **source})
        assert version["state"] == "locked", version["failure"]


@pytest.fixture(scope="module")
def sources(lonely: Hosts, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sources]:
    folder = tmp_path_factory.mktemp("sources")
    registry = ImageRegistry(folder / "registry")
    (folder / "index").mkdir()
    try:
        with PackageIndex(folder / "index").serving() as index:
            index.add("tinylib", "1.0")
            yield Sources(lonely, index, registry, folder)
    finally:
        registry.stop()


def lock_pip(sources: Sources) -> None:
    sources.lock("pip", requirements=sources.requirements, python="3.11")


def lock_conda(sources: Sources) -> None:
    """With a channel that is a folder, and a package of pip on top."""
    channel = CondaChannel(Path(sources.hosts.hub.settings["CONDA_CHANNEL_FOLDERS"]) / "channel")
    channel.add_python()
    channel.index()
    dependencies = ["python=3.11", {"pip": sources.requirements}]
    sources.lock("conda", conda={"channels": [channel.folder.as_uri()], "dependencies": dependencies})


def lock_image(sources: Sources) -> None:
    """With a registry that wants a login. The image has Open MPI, and no ssh."""
    root = make_root(sources.folder / "root")
    add_open_mpi(root)
    (root / "usr/lib/python3.11/tinylib.py").write_text("VERSION = '1.0'\n")
    reference = f"{sources.registry.host}/team/train:1"
    (sources.folder / "author").mkdir()
    with private_podman(sources.folder / "author") as podman:
        podman.make_image(root)
        login = f"--creds={USER}:{PASSWORD}"
        podman("push", "--quiet", "--tls-verify=false", login, NAME, reference)
    secret = {"value": LOGIN, "scope": "workspace"}
    sources.hosts.runs.client.put("/api/v1/secrets/REGISTRY/", json=secret).raise_for_status()
    sources.lock("image", image=reference, registry_secret="REGISTRY")


# How each is made, and what the log of the build says on both hosts.
KINDS = {
    "pip": (lock_pip, "uv pip install"),
    "conda": (lock_conda, "Downloaded 1 and installed 1 of 1 packages."),
    "image": (lock_image, "Storing signatures"),
}


def spec(source: dict[str, str], environment: str, distribution: dict[str, object]) -> dict[str, object]:
    return {
        "source": source,
        "script": "train.py",
        "environment": {"name": environment},
        "distribution": {**distribution, "node_count": 2},
        "resources": {"cluster": CLUSTER},
    }


def completed(hosts: Hosts, run: str) -> dict[str, str]:
    """Returns the logs of the run, by name, once it is over."""
    ended = hosts.runs.ended(run, 180)
    logs = {name: hosts.runs.log(run, name).decode() for name in hosts.runs.logs(run)}
    assert ended["state"] == "Completed", "\n".join((ended["sentence"], *logs.values()))
    return logs


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.long if kind == "conda" else ()) for kind in KINDS]
)
def test_trains_on_both_hosts(lonely: Hosts, kind: str, sources: Sources, frameworks_python: str) -> None:
    name, words = sources.environment(kind), KINDS[kind][1]
    assert {host.run("ip", "-4", "route").stdout.count("\n") for host in lonely.hosts} == {1}

    data = gzip.decompress((Path(frameworks_python).parent.parent / DIGITS).read_bytes()).decode()
    lines = "".join(f"{line}\n" for line in data.splitlines()[:300])
    source = {"type": "snapshot", "id": lonely.runs.snapshot(**{"train.py": TRAIN, "digits.csv": lines})}
    distribution = {"type": "pytorch", "process_count": 2, "communication_backend": "gloo"}
    run = lonely.runs.submit(spec(source, name, distribution))
    logs = completed(lonely, run)
    for rank, host in enumerate(lonely.hosts):
        text = logs[f"70_driver_log_{rank}.txt"]
        assert f"rank {rank} of 2 on {host.name} with tinylib 1.0 in " in text
        assert "accuracy " in text
    built = [text for name, text in logs.items() if ENVIRONMENT_LOG.partition(".")[0] in name]
    assert [words in text for text in built] == [True, True], logs
    assert any(path.endswith("model.json") for path in lonely.runs.outputs(run))


@pytest.mark.mpi
def test_mpi_starts_ranks_in_the_containers_of_both_hosts(lonely: Hosts, sources: Sources) -> None:
    source = {"type": "snapshot", "id": lonely.runs.snapshot(**{"train.py": RANK})}
    distribution = {"type": "mpi", "process_count_per_node": 2}
    logs = completed(lonely, lonely.runs.submit(spec(source, sources.environment("image"), distribution)))
    for rank in range(4):
        host = lonely.hosts[rank // 2]
        assert logs[f"70_driver_log_{rank}.txt"] == f"rank {rank} of 4 on {host.name} from the image\n"
