"""Fixtures of a Spark server that nobody else uses: ``server, spark = own_spark.server, own_spark.spark``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.support.spark_server import SparkServer, open_session, own_server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def server() -> Iterator[SparkServer]:
    """The server."""
    with own_server() as server:
        yield server


@pytest.fixture
def spark(server: SparkServer) -> Iterator[SparkSession]:
    """A session of it, in the place of the one for all tests."""
    with open_session(server.remote) as session:
        yield session
