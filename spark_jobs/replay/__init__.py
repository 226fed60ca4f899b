"""Quarantined lines that became clicks, after a mapping was fixed or by a rule; and how that is withdrawn."""
