"""``clickmill``, as ``.venv/bin/clickmill``, ``python -m clickmill`` and spark-submit run it."""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    # In place of this folder, or of the one that it is run in.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

    from clickmill.app import main

    main()
