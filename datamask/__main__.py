"""`python -m datamask`: the command line."""

import sys

from datamask.cli import main

if __name__ == "__main__":
    sys.exit(main())
