"""Images, sounds, tables, figures and HTML over the steps of a run, on its page and in comparisons."""
