"""Logs: trajectories that somebody else has recorded, read in one stream into counts and blocks of whole episodes."""
