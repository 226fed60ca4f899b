"""HTML pages and charts that need nothing else: no script, no other host."""
