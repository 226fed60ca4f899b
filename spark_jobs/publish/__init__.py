"""What goes out: published tables, exports, the report and the summary in the terminal."""
