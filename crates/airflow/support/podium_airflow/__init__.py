"""Modules that integrate Apache Airflow with Podium."""
