"""Files of this machine that the hub gets, as a model or a dataset."""
