"""Tries the recipes of docs/recipes. `cargo xtask conformance` calls it."""

import sys

from recipe import HERE
from trial import main

if __name__ == "__main__":
    sys.exit(main(HERE))
