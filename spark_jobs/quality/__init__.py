"""Whether counts are right: what is measured of them, and what is found."""
