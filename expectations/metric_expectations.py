"""The expectations that judge a metric frame: Great Expectations' own, each with its configuration made once.

Great Expectations makes an expectation's configuration again whenever it looks at one of its values, some 150 times a
check and validation: a third of the time that judging a small frame takes (docs/performance.md).
"""

from __future__ import annotations

from typing import Any

import great_expectations.expectations as gxe
from great_expectations.compatibility.pydantic import PrivateAttr
from great_expectations.expectations.expectation_configuration import ExpectationConfiguration


class _ConfiguredOnce:
    #: Declared by each class: Great Expectations' have private attributes too, so two cannot both inherit some.
    _made: ExpectationConfiguration | None

    @property
    def configuration(self) -> ExpectationConfiguration:
        """What the expectation says of itself, until one of its attributes is set."""
        if self._made is None:
            self._made = super().configuration  # type: ignore[misc]
        assert self._made is not None
        return self._made

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name != "_made":
            self._made = None


class ExpectMetricToBeBetween(_ConfiguredOnce, gxe.ExpectColumnValuesToBeBetween):
    """``ExpectColumnValuesToBeBetween``."""

    _made: Any = PrivateAttr(default=None)


class ExpectMetricToBeInSet(_ConfiguredOnce, gxe.ExpectColumnValuesToBeInSet):
    """``ExpectColumnValuesToBeInSet``."""

    _made: Any = PrivateAttr(default=None)


class ExpectMetricsToBeEqual(_ConfiguredOnce, gxe.ExpectColumnPairValuesToBeEqual):
    """``ExpectColumnPairValuesToBeEqual``."""

    _made: Any = PrivateAttr(default=None)
