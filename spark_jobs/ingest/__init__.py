"""From landed files and records to lines, and from lines to clicks: Arrow tables in, Arrow tables out."""
