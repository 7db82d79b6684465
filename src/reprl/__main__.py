"""``python -m reprl`` is ``reprl``."""

import sys

from reprl.cli.app import main

if __name__ == "__main__":
    sys.exit(main())
