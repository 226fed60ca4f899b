"""Pure functions from DataFrames to DataFrames, shared by batch and stream: no session, path, clock or environment."""
