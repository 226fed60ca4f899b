"""``clickmill``, as ``.venv/bin/clickmill``, ``python -m clickmill`` and spark-submit run it."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

if __name__ == "__main__":
    # In place of this folder, or of the one that it is run in.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

    # What a command imports is no garbage: to look for some in it takes a tenth of a short command.
    gc.set_threshold(100_000)
    try:
        from clickmill.app import main
    except KeyboardInterrupt:
        print("interrupted: nothing was begun", file=sys.stderr)
        sys.exit(130)

    main()
