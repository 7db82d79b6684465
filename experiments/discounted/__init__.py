"""Discounted worlds: do pairs of runs agree on a stationary policy, and what does it lose?"""
