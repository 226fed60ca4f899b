"""What a log file is: its format, the settings to write, and how its lines would be read. No Spark, no lake."""
