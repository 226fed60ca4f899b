"""Event ids, known by their hashes: which arrival of an id is the first, in a batch and in a stream."""
