"""Bounds: what replicability costs, in theory."""
