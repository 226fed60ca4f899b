"""The normal form of a URL, as the truth of sample logs counts it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from samples.normal_url import normalize_url


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("HTTPS://WWW.Example.COM:443/P/Abc?page=2#top", "https://www.example.com/P/Abc?page=2"),
        ("http://example.com:80", "http://example.com/"),
        ("http://example.com:443/a", "http://example.com:443/a"),
        ("https://example.com:80/a", "https://example.com:80/a"),
        ("https://example.com:8443/a", "https://example.com:8443/a"),
        ("https://example.com?page=2", "https://example.com/?page=2"),
        ("https://example.com#top", "https://example.com/"),
        ("https://example.com/?", "https://example.com/"),
        ("https://example.com/?utm_source=a&utm_medium=b", "https://example.com/"),
        ("https://example.com/?utm_source=a&page=2&gclid=x&sort=a#f", "https://example.com/?page=2&sort=a"),
        ("https://example.com/?GCLID=x&Utm_Campaign=y&fbclid&B=1&a=2", "https://example.com/?B=1&a=2"),
        ("https://example.com/?msclkid=1&dclid=2&yclid=3&igshid=4&mc_cid=5&mc_eid=6", "https://example.com/"),
        ("https://example.com/?utm=1&gclidx=2&xutm_a=3", "https://example.com/?utm=1&gclidx=2&xutm_a=3"),
        ("https://example.com/?q=utm_source&r=gclid", "https://example.com/?q=utm_source&r=gclid"),
        ("https://example.com/?q=%20a+b&&x=%c3%a9", "https://example.com/?q=%20a+b&&x=%c3%a9"),
        ("https://example.com/a#b?utm_source=c", "https://example.com/a"),
        (
            "https://example.com/a?to=https://B.org/?utm_source=x",
            "https://example.com/a?to=https://B.org/?utm_source=x",
        ),
        ("https://User:Pass@Example.com/a", "https://User:Pass@example.com/a"),
        ("http://[2001:DB8::1]:80/a", "http://[2001:db8::1]/a"),
    ],
)
def test_normal_form_of_a_url(url: str, expected: str) -> None:
    assert normalize_url(url) == expected


_URLS = st.builds(
    "{}://{}{}{}{}{}".format,
    st.sampled_from(["http", "HTTPS", "https"]),
    st.sampled_from(["example.com", "WWW.Example.com"]),
    st.sampled_from(["", ":80", ":443", ":8080"]),
    st.sampled_from(["", "/", "/a/B", "/%7Ea//b"]),
    st.lists(st.sampled_from(["page=2", "", "utm_source=x", "GCLID=1", "q=a=b", "gclid"]), max_size=5).map(
        lambda parameters: f"?{'&'.join(parameters)}" if parameters else ""
    ),
    st.sampled_from(["", "#", "#a?b=c&utm_x=1"]),
)


@given(_URLS)
def test_normal_form_is_its_own_normal_form(url: str) -> None:
    assert normalize_url(normalize_url(url)) == normalize_url(url)
