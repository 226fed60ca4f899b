"""Whether counts are right: what is measured of them, what is found, and which hours are held."""
