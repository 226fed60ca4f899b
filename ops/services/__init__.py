"""The services of one home: Spark Connect and Airflow, under supervisord, on loopback only."""
