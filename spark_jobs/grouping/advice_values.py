"""Advice as plain values for --json, and as lines for ``config/pipeline.toml``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from include.counting import CountKey
from spark_jobs.grouping.advice import Advice, GroupingLoad, Recommendation, fields_limit

_FIGURES_OF_LOAD = ("instances", "smallest", "mean", "largest", "skew", "idle", "speed_up")


def as_json(advice: Advice) -> dict[str, Any]:
    """The advice as plain values, under names that stay.

    - ``key``, ``source``, ``log_hours``: what was asked; ``drawn_hours``: how many of them were looked at (null: all);
      ``clicks``, ``keys``: how many; ``cores``: instances that this Spark runs in parallel.
    - ``hot_keys``: list of ``key`` (null: clicks without one), ``clicks``, ``share`` (0 to 1), ``fields_limit`` (up
      to how many instances fields grouping can help).
    - ``groupings``: list of ``grouping``, ``described``, ``instances``, ``salts`` and ``salted_keys`` (null unless
      salted_fields; an empty list: every key), ``rows`` (of each instance), ``smallest``, ``mean``, ``largest``,
      ``skew``, ``idle``, ``keys_on_several``, ``out_of_order``, ``speed_up``.
    - ``recommendation``: ``grouping``, ``instances``, ``salts``, ``salted_keys``, ``speed_up``, ``reason``; ``here``:
      the same for no more instances than cores, null where it is no other.
    - ``measured``: with --measure a list of ``described``, ``instances``, ``seconds``, ``clicks_per_second``,
      ``predicted_speed_up``, ``measured_speed_up`` (null without one instance to compare with) and
      ``rows_per_second`` (of each instance, null for too few rows).
    """
    distribution = advice.distribution
    return {
        "key": distribution.key,
        "source": advice.source,
        "log_hours": advice.log_hours,
        "drawn_hours": advice.drawn_hours,
        "clicks": distribution.clicks,
        "keys": distribution.keys,
        "cores": advice.cores,
        "hot_keys": [
            {
                "key": key.key,
                "clicks": key.clicks,
                "share": distribution.share([key]),
                "fields_limit": fields_limit(distribution, key),
            }
            for key in advice.hot_keys
        ],
        "groupings": [
            _with_salts(load) | {name: getattr(load, name) for name in _FIGURES_OF_LOAD} for load in advice.loads
        ],
        "recommendation": _with_salts(advice.recommendation),
        "here": _with_salts(advice.here) if advice.here else None,
        "measured": [
            {
                "described": measured.described,
                "instances": measured.instances,
                "seconds": measured.seconds,
                "clicks_per_second": measured.clicks_per_second,
                "predicted_speed_up": measured.predicted_speed_up,
                "measured_speed_up": measured.measured_speed_up,
                "rows_per_second": list(measured.rates),
            }
            for measured in advice.measurements
        ],
    }


def _with_salts(values: GroupingLoad | Recommendation) -> dict[str, Any]:
    """Its fields; those of its salting, null unless there is one, in place of the salting itself."""
    salting = values.salting
    return {name: value for name, value in asdict(values).items() if name != "salting"} | {
        "salts": salting.salts if salting else None,
        "salted_keys": salting.hot_keys if salting else None,
    }


def as_settings(key: CountKey, recommendation: Recommendation) -> str:
    """The recommendation as lines for ``config/pipeline.toml``."""
    lines = [f"[counts.{key}]", f'grouping = "{recommendation.grouping}"']
    if recommendation.grouping not in ("fifo", "global"):
        lines.append(f"instances = {recommendation.instances}")
    if recommendation.salting:
        lines.append(f"salts = {recommendation.salting.salts}")
        if recommendation.salting.hot_keys:
            lines.append(f"hot_keys = [{', '.join(map(_as_toml, recommendation.salting.hot_keys))}]")
    return "\n".join(lines)


def _as_toml(text: str) -> str:
    """A TOML string: what cannot be seen is written as its code point."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\U{ord(c):08X}" for c in escaped) + '"'
