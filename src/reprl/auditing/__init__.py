"""Pairs of runs → evidence: how often a learner disagrees with itself, where, and which stage parts first."""
