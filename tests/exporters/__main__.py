"""Tries programs that export the statistics. `cargo xtask conformance` calls it."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "recipes"))
from trial import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main(HERE))
