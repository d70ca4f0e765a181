"""TensorBoard in its sandboxed frame, in a real browser on a real hub."""

from __future__ import annotations

from typing import Any

import pytest

from tests.hub import Hub, eventually
from tests.pages.logs.training_log import Logged, begin
from tests.tracking.events.files import NAME, curve, event_file, new

pytestmark = pytest.mark.browser
# What a script in the frame would try, run where such a script runs.
ATTACK = """async () => {
  const tried = {};
  try { tried.cookie = document.cookie; } catch (error) { tried.cookie = error.name; }
  try { tried.parent = parent.document.title; } catch (error) { tried.parent = error.name; }
  try {
    const answer = await fetch("/api/v1/runs/", { credentials: "include" });
    tried.api = answer.status;
  } catch (error) { tried.api = error.name; }
  return tried;
}"""


@pytest.fixture(scope="module")
def run(hub: Hub) -> Logged:
    made = begin(hub, "with events")
    made.put(f"logs/{NAME}", event_file(*curve("loss", 20, kind=new)))
    made.end()
    return made


@pytest.fixture
def board(page: Any, run: Logged) -> Any:
    """The frame of TensorBoard, opened from the run's page."""
    page.goto(f"/runs/{run.number}/outputs/")
    page.get_by_role("button", name="Open TensorBoard").click()
    page.wait_for_url("**/outputs/tensorboard/")
    return page.frame_locator("iframe.tb-frame")


def frame_of(page: Any) -> Any:
    return next(frame for frame in page.frames if "/tensorboard/" in frame.url and frame != page.main_frame)


class TestFrame:
    def test_draws_the_curves_of_the_run(self, page: Any, board: Any) -> None:
        board.get_by_text("loss").first.wait_for()
        eventually(lambda: board.locator("scalar-card").count() > 0, 30, "a card is drawn")

    def test_reaches_nothing_of_the_hub(self, page: Any, board: Any) -> None:
        board.get_by_text("loss").first.wait_for()
        assert frame_of(page).evaluate(ATTACK) == {
            "cookie": "",
            "parent": "SecurityError",
            "api": "TypeError",
        }

    def test_is_the_same_one_when_the_page_is_opened_again(self, page: Any, board: Any) -> None:
        address = page.locator("iframe.tb-frame").get_attribute("src")
        page.reload()
        assert page.locator("iframe.tb-frame").get_attribute("src") == address
