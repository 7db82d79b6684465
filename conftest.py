"""What holds for all tests, before anything is imported."""

import os
import signal

# Test workers are told a width of 80; what is piped has none.
os.environ.pop("COLUMNS", None)

# A shell that starts the tests in the background lets them ignore Ctrl-C, and every process that they interrupt too.
signal.signal(signal.SIGINT, signal.default_int_handler)
