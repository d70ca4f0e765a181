"""Two checkouts of TrainHub beside one another: is the newer one as fast as the older?

Each has a hub of its own, started by its own code. Every measurement is taken of both in turn, and which
comes first changes from pair to pair, so that what the machine does meanwhile meets both alike."""
