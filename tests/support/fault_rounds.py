"""How much is drawn at random: the same each time in an ordinary run, more and other things by ``make test-faults``."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from typing import TypeVar

Cut = TypeVar("Cut")

#: Whether many are asked for.
ARE_MANY = "CLICKMILL_FAULT_ROUNDS" in os.environ
#: How many times as many as in an ordinary run.
ROUNDS = int(os.environ.get("CLICKMILL_FAULT_ROUNDS") or 1)
#: What is rare is looked for where many are drawn; CLICKMILL_FAULT_SEED draws the same ones again.
SEED = int(os.environ.get("CLICKMILL_FAULT_SEED") or (random.randrange(1 << 32) if ARE_MANY else 0))


def some_of(cuts: Sequence[Cut], number: int) -> list[Cut]:
    """So many of these, the first, the last and between them at equal distances; all by ``make test-faults``."""
    if ARE_MANY or len(cuts) <= number:
        return list(cuts)
    return [cuts[round(place * (len(cuts) - 1) / (number - 1))] for place in range(number)]
