"""Images and sounds over the steps of a run, on its page and in comparisons."""
