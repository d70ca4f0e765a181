"""The version of a hub beside that of this package: which is older, and what to do about it.

Each answer of a hub's API has the header X-TrainHub-Version: `0.3.0; oldest-sdk=0.1`."""

from __future__ import annotations

from typing import NamedTuple

from trainhub_sdk import __version__

HEADER = "X-TrainHub-Version"
_OLDEST = "oldest-sdk="
# What a hub answers to a request that only a newer one knows, or no longer.
UNKNOWN_REQUEST = (400, 404, 405)


class HubVersion(NamedTuple):
    """`text`: "" for a hub that does not name its version; `oldest_sdk`: the oldest version of this package
    that it supports, "" if it names none."""

    text: str = ""
    oldest_sdk: str = ""


def parse_header(text: str) -> HubVersion:
    version, *parameters = [part.strip() for part in text.split(";")]
    oldest = [part[len(_OLDEST) :] for part in parameters if part.startswith(_OLDEST)]
    return HubVersion(version[:50], oldest[0][:50] if oldest else "")


def version_note(hub: HubVersion, url: str, ca: str, own: str = __version__) -> str:
    """Returns which of the two is too old for the other and what to do, "" if neither is. Patches never
    matter. `url`, `ca`: of the hub."""
    index = f"--no-index --find-links {url}/sdk/" + (f" --cert {ca}" if ca else "")
    if hub.oldest_sdk and _minor(own) < _minor(hub.oldest_sdk):
        return (
            f"This program has version {own}, and the hub supports {hub.oldest_sdk} and newer. Upgrade it: "
            f"pip install --upgrade {index} trainhub"
        )
    if hub.text and _minor(hub.text) < _minor(own):
        return (
            f"The hub has version {hub.text}, which is older than that of this program, {own}, and may not "
            "know this request yet. Ask for an upgrade of the hub, or install its version here: "
            f"pip install {index} trainhub=={hub.text}"
        )
    return ""


def _minor(version: str) -> tuple[int, ...]:
    """Returns major and minor version; text that is no number counts as 0."""
    parts = [int(part) if part.isdigit() else 0 for part in version.split(".")[:2]]
    return tuple(parts + [0] * (2 - len(parts)))
