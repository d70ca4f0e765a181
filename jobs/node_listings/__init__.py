"""Lists of the files of datasets that nodes make, because the hub cannot."""
