"""Airflow's Celery executor, which adopts the tasks of an earlier scheduler: its workers still run them, or will. Those that no
worker can have, because workers and broker are younger than the task, as after a reboot, are handed back instead: nobody would
miss them for minutes, and then they would have lost an attempt.
"""

import json
import time

from airflow.providers.celery.executors.celery_executor import CeleryExecutor as AirflowCeleryExecutor

from podium_airflow import signals
from podium_airflow.interruptions import make_up_for


class CeleryExecutor(AirflowCeleryExecutor):
    """Has the name of the executor that it replaces, because tasks may name theirs."""

    def try_adopt_task_instances(self, tis):
        """Called with the tasks of earlier schedulers; those that are returned are started again."""
        since, lost, left = _since(), [], []
        for instance in tis:
            (lost if _is_lost(instance, since) else left).append(instance)
        lost.extend(super().try_adopt_task_instances(left) if left else [])
        for instance in lost:
            make_up_for(instance)
        return lost


def _is_lost(instance, since) -> bool:
    """Whether no worker has the task, and no message will bring it to one."""
    worker, broker = since["workers"].get(instance.queue), since["broker"]
    # When its state last changed, or later: the start of one that was deferred is its first.
    changed = instance.updated_at
    if worker is None or changed is None:
        # None of our workers serves its queue, or nobody knows.
        return False
    if instance.state in ("running", "restarting"):
        return changed.timestamp() < worker
    # The environment's own broker keeps messages in memory; another one may still have them.
    return instance.state == "queued" and broker is not None and changed.timestamp() < min(worker, broker)


def _since() -> dict:
    """Since when the workers of each queue and the environment's own broker have been there, in seconds of the clock as it is set
    now. Without that nothing is taken for lost.
    """
    try:
        said = json.loads(signals.workers() or "{}")
        booted = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
        workers = {queue: booted + seconds for queue, seconds in said.get("workers", {}).items()}
        broker = said.get("broker")
        return {"workers": workers, "broker": None if broker is None else booted + broker}
    except (ValueError, TypeError, AttributeError):
        return {"workers": {}, "broker": None}
