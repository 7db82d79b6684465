"""What holds for all tests, before anything is imported."""

import os

# Test workers are told a width of 80; what is piped has none.
os.environ.pop("COLUMNS", None)
