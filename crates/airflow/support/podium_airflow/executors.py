"""Airflow's own executors with support for draining: while the supervisor requests it they accept no further tasks. A task that
ended with an earlier scheduler, because the machine restarted, does not lose an attempt by that.

They have the names of the executors that they replace, because tasks may name theirs.
"""

from airflow.executors.local_executor import LocalExecutor as AirflowLocalExecutor

from podium_airflow import signals
from podium_airflow.interruptions import make_up_for


class _Drains:
    """Reports no free slots during a drain, and reports when no task is running any more."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._podium_taken = set()

    @property
    def slots_available(self):
        return 0 if signals.drain_request() else super().slots_available

    def queue_workload(self, workload, *args, **kwargs):
        # Some releases do not count the tasks that they handed to their workers.
        key = _key(workload)
        if key is not None:
            self._podium_taken.add(key)
        return super().queue_workload(workload, *args, **kwargs)

    def change_state(self, key, *args, **kwargs):
        self._podium_taken.discard(key)
        return super().change_state(key, *args, **kwargs)

    def heartbeat(self):
        # Before the first tasks start: without this mark there are none to wait for.
        signals.progress("scheduler")
        super().heartbeat()
        request = signals.drain_request()
        if not request:
            return
        left = {*self._podium_taken, *self.running, *self.queued_tasks}
        if left:
            signals.waiting(request, [name for name in map(_name, left) if name])
        else:
            signals.drained(request)

    def try_adopt_task_instances(self, tis):
        """Called with the tasks of earlier schedulers, which have ended with them; those that are returned are started again."""
        lost = super().try_adopt_task_instances(tis)
        for instance in lost:
            make_up_for(instance)
        return lost


def _key(workload):
    instance = getattr(workload, "ti", None)
    return getattr(instance, "key", None)


def _name(key):
    """A task instance for people; ``None`` if it is something else."""
    parts = [getattr(key, part, None) for part in ("dag_id", "run_id", "task_id")]
    return "/".join(map(str, parts)) if all(parts) else None


class LocalExecutor(_Drains, AirflowLocalExecutor):
    """Runs tasks as children of the scheduler."""


try:
    from airflow.executors.sequential_executor import SequentialExecutor as AirflowSequentialExecutor
except ImportError:
    # Airflow 3 has none.
    pass
else:

    class SequentialExecutor(_Drains, AirflowSequentialExecutor):
        """Runs one task at a time."""
