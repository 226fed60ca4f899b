"""From clicks to counts per key and hour, and how clicks are dealt to the instances that count them."""
