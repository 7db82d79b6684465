"""What holds for all tests, before anything is imported."""

import os
import signal

# Test workers are told a width of 80; what is piped has none.
os.environ.pop("COLUMNS", None)

# A shell that starts the tests in the background makes them ignore Ctrl-C, and so would every process that they start and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)
