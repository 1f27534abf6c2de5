"""What Apache Airflow needs to run under Podium's supervision."""
