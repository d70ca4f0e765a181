"""A person makes an environment, mends a conflict that the page names, and runs with it."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.environments.conda_channel import CondaChannel
from tests.environments.images.container_images import make_image
from tests.environments.images.image_registry import LOGIN, ImageRegistry
from tests.environments.package_index import PackageIndex
from tests.hub import Hub
from tests.runs import log, submit, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.browser]
DROP = """(field, text) => {
  const data = new DataTransfer();
  data.items.add(new File([text], "environment.yml", {type: "application/yaml"}));
  field.dispatchEvent(new DragEvent("drop", {dataTransfer: data, bubbles: true, cancelable: true}));
}"""
USE = "import tinylib\nprint(tinylib.VERSION)\n"


def test_from_a_conflict_to_a_run(page: Any, hub: Hub, index: PackageIndex, tmp_path: Any) -> None:
    index.add("base", "1.0")
    index.add("tinylib", "1.0", "base")
    index.add("tinylib", "2.0", "base>=2")
    file = tmp_path / "requirements.txt"
    file.write_text(f"--index-url {index.url}\ntinylib==2.0\n")

    page.goto("/environments/new/")
    page.set_input_files("#file", file)
    expect(page.locator("#source")).to_have_value(file.read_text())
    page.fill("#name", "browsed")
    page.fill("#python", "3.11")
    page.click("text=Make the environment")
    page.wait_for_url("**/environments/browsed/versions/1/")
    expect(page.locator(".th-note")).to_contain_text("tinylib==2.0", timeout=60_000)
    expect(page.locator(".th-note")).to_contain_text("there is only base==1.0")

    page.click("text=Edit it")
    expect(page.locator("#source")).to_have_value(f"--index-url {index.url}\ntinylib==2.0\n")
    page.fill("#source", f"--index-url {index.url}\ntinylib<2\n")
    page.click("text=Make the version")
    page.wait_for_url("**/environments/browsed/versions/2/")
    # The buttons outside of the part that refreshes are there, too, without a reload by hand.
    expect(page.locator("text=New run with it")).to_be_visible(timeout=60_000)
    expect(page.locator("[aria-labelledby=en-lock]")).to_contain_text("tinylib")

    run = submit(hub, USE, environment={"name": "browsed"})
    wait_for(hub, run, "Completed", seconds=180)
    assert log(hub, run) == b"1.0\n"
    page.reload()
    expect(page.locator("[aria-labelledby=en-nodes]")).to_contain_text("1 of 1 node")


def test_a_conda_environment_from_a_dropped_file(page: Any, tmp_path: Any) -> None:
    channel = CondaChannel(tmp_path / "channel")
    channel.add("python", "3.11.2")
    channel.add("cowsay", "2.0", "python")
    channel.index()
    with channel.serving():
        text = f"name: ignored\nchannels: [{channel.url}, nodefaults]\ndependencies: [cowsay]\n"
        page.goto("/environments/new/?kind=conda")
        field = page.locator("#source")
        field.evaluate(DROP, text)
        expect(field).to_have_value(text)
        page.fill("#name", "dropped")
        page.click("text=Make the environment")
        page.wait_for_url("**/environments/dropped/versions/1/")
        expect(page.locator("[aria-labelledby=en-lock]")).to_contain_text("cowsay", timeout=60_000)
    expect(page.locator("[aria-labelledby=en-lock]")).to_contain_text("conda")
    expect(page.locator("text=New run with it")).to_be_visible()


def test_a_dockerfile_from_a_base_image_and_a_mended_line_to_its_live_state(page: Any) -> None:
    page.goto("/environments/new/")
    page.click(".th-tabs >> text=Dockerfile")
    page.fill("#name", "written")
    page.click("text=Write it from a base image and packages")
    page.fill("#base_image", "https://127.0.0.1:9/base")
    page.fill("#pip_packages", "cowsay")
    page.fill("#debian_packages", "git")
    page.click("text=Write the Dockerfile")
    expect(page.locator("#base_image-error")).to_contain_text("write 127.0.0.1:9/base")
    page.fill("#base_image", "127.0.0.1:9/base")
    page.click("text=Write the Dockerfile")
    text = page.locator("#source").input_value()
    assert text.startswith("FROM 127.0.0.1:9/base\nRUN apt-get update")
    assert "pip install --no-cache-dir cowsay" in text

    page.fill("#source", f"{text}COPY train.py /app/\n")
    page.click("text=Make the environment")
    expect(page.locator("#source-error")).to_contain_text("Line 6: COPY has no files to copy")
    expect(page.locator("#source")).to_have_value(f"{text}COPY train.py /app/\n")
    page.fill("#source", text)
    page.click("text=Make the environment")
    page.wait_for_url("**/environments/written/versions/1/")
    # No node of this hub builds images: the page says so without a reload.
    expect(page.locator("[aria-labelledby=en-facts]")).to_contain_text("It waits for a node", timeout=60_000)
    expect(page.locator("[aria-labelledby=en-making]")).to_contain_text("No node has been ordered")
    expect(page.locator("[aria-labelledby=en-source]")).to_contain_text("FROM 127.0.0.1:9/base")


def test_an_image_environment_by_the_form(page: Any, hub: Hub, tmp_path: Any) -> None:
    registry = ImageRegistry(tmp_path / "registry")
    try:
        image = make_image({"bin/start": b"#!/bin/sh\n"}, environment=("PATH=/bin", "CUDA_VERSION=12.8.1"))
        registry.push("train", "1", image)
        with hub.client() as client:
            secret = {"value": LOGIN, "scope": "workspace"}
            client.put("/api/v1/secrets/BROWSED/", json=secret).raise_for_status()

        page.goto("/environments/new/")
        page.click("text=Container image")
        page.fill("#name", "imaged")
        page.fill("#source", f"{registry.host}/train:1")
        page.click("text=Make the environment")
        page.wait_for_url("**/environments/imaged/versions/1/")
        # The page says what is missing, and the form of the next version takes it.
        expect(page.locator(".th-note").first).to_contain_text("login", timeout=60_000)
        page.click("text=Edit it")
        page.fill("#registry_secret", "BROWSED")
        page.click("text=Make the version")
        page.wait_for_url("**/environments/imaged/versions/2/")
        expect(page.locator("text=New run with it")).to_be_visible(timeout=60_000)
        expect(page.locator("main")).to_contain_text(image.digest)
        expect(page.locator("main")).to_contain_text("12.8.1")
        # The worker fetches the layers meanwhile.
        expect(page.locator("#en-hub")).to_contain_text("The only layer is on the hub", timeout=60_000)
    finally:
        registry.stop()
