from __future__ import annotations

from tests.node.builders import script
from tests.node.hub import FakeHub
from trainhub_node.agent import Agent


class TestOneProcess:
    def test_goes_from_the_wake_up_to_settled(self, hub: FakeHub, agent: Agent) -> None:
        key = hub.give(
            script(hub, "import os\nprint('hello')\nopen('outputs/model.txt', 'w').write('weights')\n")
        )

        fact = hub.wait_done(key)

        assert hub.log(key) == b"hello\n"
        assert [member.exit_code for member in fact.members] == [0]
        assert hub.output(key, "model.txt") == b"weights"
        assert list(fact.phase_at) == ["accepted", "preparing", "running", "uploading", "done"]
        hub.wait(lambda: hub.reports > 0 and key in hub.settled)
        assert fact.members[0].log_bytes == 6
        assert (fact.error, fact.stopping, fact.warnings) == ("", "", ())
