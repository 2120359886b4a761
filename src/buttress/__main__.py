"""``python -m buttress``: the command line without its script."""

import sys

from buttress.cli import main

if __name__ == "__main__":
    sys.exit(main())
