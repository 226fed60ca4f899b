"""The Delta tables: the only place where jobs read and write them."""
