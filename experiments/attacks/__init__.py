"""Environments that were made to break the two promises of a run, and pairs of runs in each."""
