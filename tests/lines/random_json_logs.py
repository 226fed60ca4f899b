"""JSON in random settings, written by Python's ``json``, with what each line is."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

from tests.lines.random_delimited_logs import RandomLog, Texts


class RandomJson(RandomLog):
    """Objects with the fields at any depth, by names with points or not; all else beside them."""

    unwritable = ""

    def __init__(self, rng: random.Random, format_: str) -> None:
        super().__init__(rng, format_)
        roles = {"time": "time", "path": "target", "host": "host", "client_address": "client", "status": "status",
                 "user_agent": "agent"}  # fmt: skip
        self.paths = {
            of: [rng.choice(["a", "b", "http"]) for _ in range(rng.randrange(3))] + [of] for of in roles.values()
        }
        self.settings["fields"] = {role: ".".join(self.paths[of]) for role, of in roles.items()}

    def write(self, texts: Texts) -> str:
        rng = self.rng
        event: dict[str, Any] = {"x": rng.choice([None, [1, {"time": "no"}], 1e300, "\ud800"]), "msg": self.agent()}
        for role in rng.sample([*self.paths], len(self.paths)):
            text: Any = texts[role]
            if text is None and rng.random() < 0.5:
                continue
            inner, path = event, self.paths[role]
            if rng.random() < 0.2:  # as one name, points and all
                path = [".".join(path)]
            for name in path[:-1]:
                inner = inner.setdefault(name, {})
            inner[path[-1]] = int(text) if role == "status" and text and rng.random() < 0.5 else text
        return json.dumps(event, ensure_ascii="\ud800" == event["x"] or rng.random() < 0.5,
                          separators=rng.choice([None, (",", ":"), (" , ", " : ")]))  # fmt: skip

    def is_cut(self, text: str) -> bool:
        return True

    def faults(self) -> dict[str, Callable[[Texts], str]]:
        return super().faults() | {
            "not_json": lambda texts: self.write(texts)[: -self.rng.randrange(1, 20)],
        }
