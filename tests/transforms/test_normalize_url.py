"""The normal form of a URL, held to samples' own, which shares no code with it."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from samples import normal_url

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

TRACKING = ("utm_*", "gclid", "fbclid", "msclkid", "dclid", "yclid", "igshid", "mc_cid", "mc_eid")
URLS = {
    "http://shop.test": "http://shop.test/",
    "HTTP://SHOP.Test/Path": "http://shop.test/Path",
    "http://shop.test:80/a": "http://shop.test/a",
    "https://shop.test:443": "https://shop.test/",
    "http://shop.test:443/": "http://shop.test:443/",
    "https://shop.test:80/": "https://shop.test:80/",
    "http://shop.test:8080/": "http://shop.test:8080/",
    "http://[2001:DB8::1]:80/": "http://[2001:db8::1]/",
    "http://User:Pass@Shop.test/": "http://User:Pass@shop.test/",
    "http://shop.test?a=1": "http://shop.test/?a=1",
    "http://shop.test/?": "http://shop.test/",
    "http://shop.test/#top": "http://shop.test/",
    "http://shop.test#a?b": "http://shop.test/",
    "http://shop.test/?a=1#b?c": "http://shop.test/?a=1",
    "http://shop.test/?utm_source=x": "http://shop.test/",
    "http://shop.test/?UTM_Source=x&b=2&GCLID=3": "http://shop.test/?b=2",
    "http://shop.test/?b=2&a=1&b=2": "http://shop.test/?b=2&a=1&b=2",
    "http://shop.test/?gclid": "http://shop.test/",
    "http://shop.test/?gclids=1&xgclid=1": "http://shop.test/?gclids=1&xgclid=1",
    "http://shop.test/?a=gclid&c=utm_x": "http://shop.test/?a=gclid&c=utm_x",
    "http://shop.test/?a=%2f%2F+&b": "http://shop.test/?a=%2f%2F+&b",
    "http://shop.test/a/../b//c/.": "http://shop.test/a/../b//c/.",
    "http://shop.test/é?ü=ß": "http://shop.test/é?ü=ß",
}


def normalized(spark: SparkSession, urls: list[str], parameters: tuple[str, ...] = TRACKING) -> list[str]:
    """The normal forms as parse_lines makes them: by the short cut where it says yes."""
    from pyspark.sql import functions as F

    from spark_jobs.transforms.normalize_url import is_normal_url, normalize_url

    frame = spark.createDataFrame(list(enumerate(urls)), "n INT, url STRING").select(
        "n",
        "url",
        is_normal_url(F.col("url"), parameters).alias("is_normal"),
        normalize_url(F.col("url"), parameters).alias("normal"),
    )
    rows = sorted(frame.collect())
    for row in rows:
        assert not row["is_normal"] or row["normal"] == row["url"], row
    return [row["normal"] for row in rows]


def test_normal_form_of_each(spark: SparkSession) -> None:
    assert dict(zip(URLS, normalized(spark, list(URLS)), strict=True)) == URLS
    assert {url: normal_url.normalize_url(url) for url in URLS} == URLS


def test_without_tracking_parameters_every_parameter_stays(spark: SparkSession) -> None:
    urls = ["http://shop.test/?utm_source=x&gclid", "http://shop.test/?", "HTTP://a"]
    assert normalized(spark, urls, ()) == [urls[0], "http://shop.test/", "http://a/"]


def _any_url(rng: random.Random) -> str:
    def text(alphabet: str, most: int) -> str:
        return "".join(rng.choices(alphabet, k=rng.randrange(most)))

    scheme = rng.choice(["http", "https", "HTTP", "Https"])
    user = rng.choice(["", "", "", "u@", "U:p@"])
    host = rng.choice(["a", "Shop.TEST", "[::1]", "x-y.z", "é.test"])
    port = rng.choice(["", "", ":80", ":443", ":8080", ":"])
    path = rng.choice(["", "/", "/" + text("aB/.;%2f:=&é@", 9)])
    names = [*TRACKING, "utm_Source", "UTM_", "Gclid", "q", "", "a", "autm_x", text("a=&?;+%é", 5)]
    parameters = "&".join(
        f"{rng.choice(names)}{rng.choice(['', '=', '=1', '=a=b', '=?/@:'])}" for _ in range(rng.randrange(4))
    )
    query = rng.choice(["", "?", "?" + parameters, "?" + parameters])
    return f"{scheme}://{user}{host}{port}{path}{query}{rng.choice(['', '', '#', '#top?x#y'])}"


def test_any_url_has_the_independent_normal_form(spark: SparkSession) -> None:
    rng = random.Random(3)
    urls = [_any_url(rng) for _ in range(3000)]
    expected = [normal_url.normalize_url(url) for url in urls]
    assert sum(url == normal for url, normal in zip(urls, expected, strict=True)) > 50
    found = normalized(spark, urls)
    assert [(u, f, e) for u, f, e in zip(urls, found, expected, strict=True) if f != e] == []
    # What is in normal form stays so.
    assert normalized(spark, expected) == expected
