"""The command line: one thin module per command, wired in ``app``."""
