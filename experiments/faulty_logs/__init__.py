"""Logs of known worlds with the faults that real ones have: is a fault said, and do intervals hold?"""
