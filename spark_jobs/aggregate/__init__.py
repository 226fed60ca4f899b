"""From clicks to counts per key and hour, and how clicks are sent to the instances that count them."""
