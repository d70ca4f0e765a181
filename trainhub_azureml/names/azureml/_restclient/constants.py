"""The states of runs, which some scripts import from here."""


class RunStatus:
    NOT_STARTED = "NotStarted"
    STARTING = "Starting"
    QUEUED = "Queued"
    PREPARING = "Preparing"
    RUNNING = "Running"
    FINALIZING = "Finalizing"
    CANCEL_REQUESTED = "CancelRequested"
    COMPLETED = "Completed"
    FAILED = "Failed"
    CANCELED = "Canceled"
    UNAPPROVED = "Unapproved"
