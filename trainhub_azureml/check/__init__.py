"""Says what of scripts and notebooks works on TrainHub, without running them."""
