"""Reading and removing folders whose content a run controls, from an agent that has more rights than the
run."""
