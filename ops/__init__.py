"""Operating Clickmill on one machine: set-up, services, and `make run`."""
