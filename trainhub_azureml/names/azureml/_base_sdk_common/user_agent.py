"""Some libraries add their name to the requests of the SDK v1 from here."""


def append(name: str, version: str = "") -> None:
    """Does nothing."""
