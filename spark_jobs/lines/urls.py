"""The normal form of a URL, so that one page is one key.

What a browser opens is a click. The rule is the WHATWG URL standard, https://url.spec.whatwg.org: a URL is read and
written as a browser does it (host in lower case, IDN as punycode, default port and ``.``/``..`` segments gone, what
must be percent-encoded is). Beyond it, so that a page is not counted under several keys:

* the fragment goes;
* configured tracking parameters go, names compared without case; the others stay, in their order;
* a query that is or becomes empty goes with its ``?``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import can_ada

_WEB = ("http://", "https://")
# No name in the DNS is longer (RFC 1035, section 2.3.4), nor one of its labels, whose ASCII form is longer still. The
# time that a longer one of other letters takes grows with its square.
_MAX_HOST, _MAX_LABEL = 253, 63
_HOST = re.compile(r"[^:]*:[/\\]*(?:[^/\\?#]*@)?([^/\\?#]*)")


def url_normalizer(tracking_parameters: Iterable[str]) -> Callable[[str], str | None]:
    """A function from a URL to its normal form; None for what no browser opens as an http or https URL with a host.

    A tracking parameter's name that ends in ``*`` stands for all that start so.
    """
    names = [
        re.escape(name.removesuffix("*")) + ("[^=&]*" if name.endswith("*") else "") for name in tracking_parameters
    ]
    # Each parameter with the & before it, so that removing one leaves the others as they are.
    tracking = re.compile(rf"&(?:{'|'.join(names)})(?:=[^&]*)?(?=&|\Z)", re.IGNORECASE) if names else None

    def normal_form(url: str) -> str | None:
        if not url.isascii() and _is_too_long(url):
            return None
        try:
            written: str = can_ada.parse(url).href
        except ValueError:
            return None
        if not written.startswith(_WEB):
            return None
        page, _, query = written.partition("#")[0].partition("?")
        if tracking is not None and query:
            query = tracking.sub("", f"&{query}")[1:]
        return f"{page}?{query}" if query else page

    return normal_form


def _is_too_long(url: str) -> bool:
    """Whether a host that is not ASCII is longer than any in the DNS."""
    found = _HOST.match(url)
    if found is None or found[1].isascii():
        return False
    labels = re.split("[.\u3002\uff0e\uff61]", found[1])
    # With room for a port, which is :65535 at the most.
    return len(found[1]) > _MAX_HOST + 6 or any(len(label) > _MAX_LABEL + 6 for label in labels)
