"""The command line of TrainHub: `trainhub`. It asks a hub through `trainhub_sdk` alone."""
