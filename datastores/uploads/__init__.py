"""Files that people upload as versions of datasets."""
