"""A whole installation under load, whose parts are killed, stopped, cut off, slowed, filled and set to a
wrong clock in turn, at random; afterwards nothing may be lost, doubled or left over. `make test-chaos
SECONDS=1800 SEED=7` runs it for as long as you like; the seed of a run that failed repeats its troubles,
though not the moment in which the machine did each thing."""
