"""The past of the demo: runs of the last 30 days, written by the code that writes the present, with its clock
set back."""
