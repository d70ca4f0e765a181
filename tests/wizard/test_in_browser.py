"""The wizard in a real browser: what only scripts, focus and keys can break."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.hub import Hub

pytestmark = [pytest.mark.slow, pytest.mark.browser]
FILES = {
    "train.py": "import sys\nprint(sys.argv)\n",
    "package/naïve ☃.py": "x = 1\n",
    "empty.txt": "",
    ".git/config": "not sent\n",
    "package/__pycache__/x.pyc": "not sent\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for path, text in FILES.items():
        file = tmp_path / "code" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return tmp_path / "code"


@pytest.fixture
def draft(page: Any, folder: Path) -> Any:
    """A draft begun by uploading a folder, at its first step."""
    page.goto("/runs/new/")
    page.set_input_files("[data-role=folder]", folder)
    page.wait_for_url("**/source/")
    return page


class TestUpload:
    def test_a_folder_arrives_whole_and_without_what_never_belongs_to_it(self, draft: Any) -> None:
        draft.locator("summary", has_text="3 files").click()
        expect(draft.locator(".wz-files li")).to_have_text(["train.py", "package/naïve ☃.py", "empty.txt"])
        expect(draft.locator("#id_script")).to_have_value("train.py")

    def test_a_folder_chosen_before_the_script_is_loaded_arrives(self, page: Any, folder: Path) -> None:
        requests: list[Any] = []

        def hold(route: Any) -> None:
            requests.append(route)

        page.route("**/js/wizard.*", hold, times=1)
        page.goto("/runs/new/", wait_until="commit")
        page.set_input_files("[data-role=folder]", folder)
        assert len(requests) == 1
        requests[0].continue_()
        page.wait_for_url("**/source/")

    def test_what_the_hub_refuses_is_told_where_it_was_dropped(
        self, page: Any, hub: Hub, tmp_path: Path
    ) -> None:
        broken = tmp_path / "broken.zip"
        broken.write_bytes(b"PK\x03\x04 not a zip")
        page.goto("/runs/new/")
        page.set_input_files("[data-role=zip]", broken)
        expect(page.locator("[data-role=state]")).to_have_class(re.compile("wz-failed"))
        assert page.url.endswith("/runs/new/")


class TestTyping:
    def test_redraws_the_picture_and_keeps_the_focus(self, draft: Any) -> None:
        draft.locator("#id_arguments").press_sequentially("--name 'two words'")
        expect(draft.locator(".wz-command")).to_have_text("python train.py --name 'two words'")
        expect(draft.locator("#id_arguments")).to_be_focused()
        expect(draft.locator("#tokens-arguments code")).to_have_text(["--name", "two words"])

    def test_a_finding_comes_and_goes_under_its_field(self, draft: Any) -> None:
        draft.locator("#id_script").fill("trian.py")
        expect(draft.locator("#finding-script")).to_contain_text("did you mean train.py?")
        draft.locator("#id_script").fill("train.py")
        expect(draft.locator("#finding-script")).not_to_contain_text("did you mean")

    def test_all_gpus_take_the_place_of_the_number(self, draft: Any) -> None:
        draft.locator(".wz-step", has_text="Resources").click()
        draft.get_by_label("All GPUs of each node").check()
        expect(draft.locator("#id_gpus_per_node")).to_be_hidden()
        expect(draft.locator("#finding-gpus_per_node")).to_contain_text("No node of the cluster has GPUs")

    def test_what_was_typed_is_there_after_the_tab_was_closed(self, draft: Any) -> None:
        with draft.expect_response("**/preview/"):
            draft.locator("#id_arguments").fill("--half 'typ")
        address = draft.url
        draft.goto("about:blank")
        draft.goto(address)
        expect(draft.locator("#id_arguments")).to_have_value("--half 'typ")
        expect(draft.locator("#finding-arguments")).to_contain_text("close it")

    def test_enter_goes_to_the_next_step(self, draft: Any) -> None:
        draft.locator("#id_script").press("Enter")
        draft.wait_for_url("**/distribution/")


class TestPicture:
    def test_arrow_keys_walk_through_the_ranks(self, draft: Any) -> None:
        draft.locator("#id_arguments").fill("--me=$RANK")
        draft.locator(".wz-step", has_text="Distribution").click()
        draft.check("input[value=pytorch_process]")
        draft.fill("[name=pp_process_count]", "4")
        expect(draft.locator(".wz-square")).to_have_count(4)
        draft.locator("#rank-0").focus()
        draft.keyboard.press("ArrowRight")
        expect(draft.locator(".wz-command")).to_contain_text("--me=1")
        expect(draft.locator("#rank-1")).to_be_focused()

    def test_a_wrong_number_dims_the_last_picture(self, draft: Any) -> None:
        draft.locator(".wz-step", has_text="Distribution").click()
        draft.check("input[value=mpi]")
        draft.fill("[name=mpi_process_count]", "")
        expect(draft.locator("#picture-status")).to_have_class(re.compile("wz-stale"))
        expect(draft.locator(".wz-square")).to_have_count(1)


class TestRows:
    def test_variables_are_added_and_removed(self, draft: Any) -> None:
        draft.locator(".wz-step", has_text="Environment").click()
        draft.locator("[name=variable_name]").first.fill("FIRST")
        draft.get_by_role("button", name="Add a variable").click()
        draft.keyboard.type("2BAD")
        expect(draft.locator("#finding-variables")).to_contain_text("'2BAD' is not a name")
        draft.get_by_role("button", name="Remove variable").nth(1).click()
        expect(draft.locator("#finding-variables")).not_to_contain_text("2BAD")
        draft.locator(".wz-step", has_text="Review").click()
        expect(draft.locator(".wz-table .wz-mine", has_text="FIRST")).to_be_visible()

    def test_an_added_row_is_blank_if_typing_began_before_the_script_was_loaded(self, draft: Any) -> None:
        held: list[Any] = []

        # Not `held.append` itself: Playwright sets an attribute on its handlers.
        def hold(route: Any) -> None:
            held.append(route)

        draft.route("**/wizard.js*", hold)
        draft.locator(".wz-step", has_text="Environment").click(no_wait_after=True)
        draft.locator("[name=variable_name]").fill("FIRST")
        for route in held:
            route.continue_()
        draft.get_by_role("button", name="Add a variable").click()
        expect(draft.locator("[name=variable_name]").nth(0)).to_have_value("FIRST")
        expect(draft.locator("[name=variable_name]").nth(1)).to_have_value("")


def test_nothing_reaches_over_the_side_of_a_telephone(draft: Any) -> None:
    draft.set_viewport_size({"width": 390, "height": 844})
    for step in ("Source and", "Distribution", "Resources", "Environment", "Review"):
        draft.locator(".wz-step", has_text=step).click()
        draft.get_by_role("heading", level=1).wait_for()
        assert draft.evaluate("document.documentElement.scrollWidth") == 390, step
