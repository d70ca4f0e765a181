"""What a review tried on a root agent, and what held: hostile outputs, hostile sources, variables of the
dynamic loader."""

from __future__ import annotations

import stat
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.attacks.node.runner import needs_root, nobody
from tests.node.builders import order, process, script, settings
from tests.node.conftest import end_children
from tests.node.hub import FakeHub
from trainhub_node.agent import Agent
from trainhub_node.launch import unpack
from trainhub_node.rundir import RunDir
from trainhub_node.settings import NodeSettings

pytestmark = needs_root
HOSTILE_OUTPUTS = """
import os
os.chdir('outputs')
for name, target in (('shadow', '/etc/shadow'), ('environ', '/proc/1/environ'),
                     ('self', '/proc/self/root/etc/shadow'),
                     ('zero', '/dev/zero'), ('up', '../../order.json'), ('folder', '/etc'),
                     ('terms', '../../terms.json')):
    os.symlink(target, name)
os.mkfifo('pipe')
for target in ('/etc/shadow', '../../order.json'):
    try:
        os.link(target, 'hard')
    except OSError:
        pass
os.makedirs('deep/' * 300)
os.symlink('/etc', '../logs/etc')
open('fine', 'w').write('fine')
"""


@pytest.fixture
def node(hub: FakeHub, open_folder: Path) -> Iterator[NodeSettings]:
    yield settings(hub, open_folder / "node", run_as=nobody(), python="/usr/bin/python3")
    end_children(open_folder)


def test_nothing_that_a_run_links_to_gets_among_its_outputs(
    hub: FakeHub, start_agent: Callable[..., Agent], node: NodeSettings
) -> None:
    start_agent(node)

    fact = hub.wait_done(hub.give(script(hub, HOSTILE_OUTPUTS)), 60)

    assert [file.path for file in fact.outputs] == ["fine"]
    assert [name for name in fact.logs if name.startswith(("logs/", "outputs/"))] == []
    refused = {warning.split()[0] for warning in fact.warnings}
    assert any(
        "deep/deep" in warning and warning.endswith("File name too long.") for warning in fact.warnings
    )
    assert {"shadow", "environ", "self", "zero", "up", "folder", "terms", "pipe", "logs/etc"} <= refused


def test_variables_of_the_dynamic_loader_reach_no_process_of_root(
    hub: FakeHub, start_agent: Callable[..., Agent], node: NodeSettings
) -> None:
    """The loader complains, in the log of each process that it loads, of a library that is not there."""
    start_agent(node)
    made = order(
        hub,
        {"train.py": "print('ran')"},
        process(0, ("python", "train.py"), LD_PRELOAD="/no/library.so", PYTHONPATH="/no"),
    )

    key = hub.give(made)
    hub.wait_done(key)

    assert b"/no/library.so" in hub.log(key)
    assert b"ran\n" in hub.log(key)
    folder = RunDir(str(node.attempts), *key)
    assert b"library.so" not in Path(folder.child_log).read_bytes()


def entry(name: str, mode: int) -> zipfile.ZipInfo:
    made = zipfile.ZipInfo(name)
    made.external_attr = mode << 16
    return made


@pytest.mark.parametrize(
    "made",
    [
        entry("../out", 0o644),
        entry("/abs", 0o644),
        entry("a/../../b", 0o644),
        entry("a\\..\\b", 0o644),
        entry("link", stat.S_IFLNK | 0o777),
        entry("device", stat.S_IFCHR | 0o666),
        entry("pipe", stat.S_IFIFO | 0o666),
        entry("train.py", 0o644),
        entry("train.py/x", 0o644),
    ],
    ids=lambda made: repr(made.filename),
)
def test_a_hostile_source_is_refused_and_leaves_nothing(open_folder: Path, made: zipfile.ZipInfo) -> None:
    archive = open_folder / "source.zip"
    with zipfile.ZipFile(archive, "w") as zipped:
        zipped.writestr("train.py", "x")
        zipped.writestr(made, "/etc/shadow")

    with pytest.raises(unpack.BadSnapshot):
        unpack.unpack_snapshot(archive, open_folder / "work", nobody())

    assert [path.name for path in open_folder.iterdir()] == ["source.zip"]


def test_a_source_brings_no_setuid_bit(open_folder: Path) -> None:
    archive = open_folder / "source.zip"
    with zipfile.ZipFile(archive, "w") as zipped:
        zipped.writestr(entry("tool", stat.S_IFREG | 0o6755), "x")

    unpack.unpack_snapshot(archive, open_folder / "work", nobody())

    assert oct((open_folder / "work" / "tool").stat().st_mode & 0o7777) == "0o700"
