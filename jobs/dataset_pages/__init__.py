"""The pages of datasets, which name the runs that learned from them."""
