"""What is kept on a host: the lease of the run that may change it, the history, and what pruning leaves."""
