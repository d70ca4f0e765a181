"""The Overview tab: what a run was, did and cost, on one page."""
