"""Rules by which a workspace removes data of runs that ended long ago."""
