"""Facts about an image in the words of pages."""

from __future__ import annotations

from environments.images.image_lock import ImageLock
from environments.lock_file import PackageChange
from trainhub_launch.scheduler.sizes import bytes_text


def image_sentence(lock: ImageLock) -> str:
    """Returns what a choice of the environment says about it."""
    named = [f"{name} {version}" for name, version in lock.software.items()]
    image = "Image built from a Dockerfile" if lock.is_built else f"Image {lock.reference}"
    facts = [image, f"{bytes_text(lock.size)} to pull", *named]
    return f"{', '.join(facts)}."


def compare_images(before: ImageLock, after: ImageLock) -> tuple[PackageChange, ...]:
    """Returns what differs between two images: digest, size, working folder and variables."""
    old, new = _facts(before), _facts(after)
    return tuple(
        PackageChange(name, old.get(name, ""), new.get(name, ""))
        for name in dict.fromkeys((*old, *new))
        if old.get(name) != new.get(name)
    )


def _facts(lock: ImageLock) -> dict[str, str]:
    facts = {"digest": lock.digest, "size": bytes_text(lock.size), "working folder": lock.working_dir}
    return facts | dict(sorted(lock.variables.items()))
