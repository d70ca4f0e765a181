"""TrainHub collects nothing about its users."""


def set_diagnostics_collection(send_diagnostics: bool = True, verbosity: object = None) -> None:
    """Does nothing."""
