"""What every job needs of Spark and of its terminal; knows no table."""
