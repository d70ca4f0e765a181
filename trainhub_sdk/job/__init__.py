"""What runs in jobs on behalf of other packages: logging to the run of a process by the job's own token, and
the archive by which a package reaches the job."""
