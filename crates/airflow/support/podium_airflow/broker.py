"""The Celery settings for a broker on a Unix socket: those that Airflow uses for brokers whose URL it recognises.

Celery hands a task to another worker when it has not ended within an hour. Airflow makes that a day, but some releases do not
read the setting for it from the environment.
"""

from airflow.providers.celery.executors.default_celery import DEFAULT_CELERY_CONFIG

_DAY = 24 * 60 * 60

CONFIG = {
    **DEFAULT_CELERY_CONFIG,
    "broker_transport_options": {
        "visibility_timeout": _DAY,
        **(DEFAULT_CELERY_CONFIG.get("broker_transport_options") or {}),
    },
}
