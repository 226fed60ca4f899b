"""The skew of parallel instances, and what to do about it in a sentence."""

from __future__ import annotations

import math

from include.texts import as_printable, crop_middle

#: Up to this skew a load is called even: at least two thirds of what the instances could do is used.
EVEN_SKEW = 1.5


_MAX_KEY_CHARACTERS = 100


def skew(busiest_rows: int, rows: int, instances: int) -> float:
    """Rows of the busiest instance over the mean; 1 is even, ``instances`` is all rows on one; 1 without rows."""
    return busiest_rows * instances / rows if rows else 1.0


def recommended_salts(instances: int, hot_share: float) -> int:
    """Over how many instances keys with this part of the clicks are to be split: the fewest that make the load even.

    Should all hot keys meet on one instance it has hot_share / salts of the clicks, and an even part of the others,
    (1 - hot_share) / instances; that shall be at most EVEN_SKEW / instances.
    """
    needed = math.ceil(instances * hot_share / (EVEN_SKEW - 1 + hot_share))
    return max(min(needed, instances), min(2, instances))


def uneven_load_advice(grouping: str, instances: int, busiest_key: str | None, share: float) -> str:
    """What to do about instances of this grouping that are unevenly busy, in a sentence.

    ``share`` is the part that the largest count, of ``busiest_key``, has of all clicks counted. Counts are per click
    hour too: over several of them a hot key has more than the largest of its counts.
    """
    shown = "the null key" if busiest_key is None else f"'{as_shown(busiest_key)}'"
    if share * instances > 1:
        return f"{grouping}: {shown} alone {limit_of_fields(share)}; salt it by {recommended_salts(instances, share)}"
    return (
        f"{grouping}: the largest count, of {shown}, has {share:.0%} of the clicks, no more than an even part: busy "
        "keys happen to share an instance; choose another number of instances, or ask clickmill advise"
    )


def as_shown(key: str | None, length: int = _MAX_KEY_CHARACTERS) -> str:
    """A key for people: in one line, cropped, without anything that a terminal would obey."""
    return "null" if key is None else crop_middle(as_printable(key), length)


def limit_of_fields(share: float, has: str = "has") -> str:
    """Above how many instances fields grouping does not help, where the largest key has this part of the clicks."""
    limit = math.floor(1 / share + 1e-9)
    return (
        f"{has} {share:.0%} of the clicks: above {limit} instance{'' if limit == 1 else 's'} "
        "fields grouping cannot help"
    )
