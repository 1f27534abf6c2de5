"""Tells the control plane which DAG runs have started and ended and which tasks have failed or were interrupted: a line of JSON
for each, in the environment's spool directory, which the control plane reads at its own pace.

Nothing here may slow down or break what it listens to: a line is one write that is not waited for, a full spool drops it and
counts it, and every error is swallowed. The plugins of the environment are left alone, and so is whether it has listeners,
which Airflow asks before it accepts some DAGs.
"""

import functools
import importlib.machinery
import json
import os
import re
import sys
import time

_SPOOL = os.environ.get("PODIUM_SPOOL", "")
_MOST_LINE = 4000
_MOST_SEGMENT = 256 * 1024
_MOST_SEGMENTS = 16
_SEGMENT = re.compile("[0-9]{16}")
_DROPPED = "dropped"
_MOST_DROPPED = 1024 * 1024

# Core and tasks have a manager each in the newest releases.
_MANAGERS = ("airflow.listeners.listener", "airflow.sdk.listener")


def install() -> None:
    """Listens through every listener manager of this process, from the moment that its module is imported."""
    if not _SPOOL:
        return
    for name in _MANAGERS:
        if name in sys.modules:
            _attach(sys.modules[name])
    sys.meta_path.insert(0, _Attaching())


class _Attaching:
    """Finds the modules of listener managers where everybody finds them, and attaches to them."""

    def find_spec(self, name, path=None, target=None):
        if name not in _MANAGERS:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            _attach(module)

        spec.loader.exec_module = exec_module
        return spec


def _attach(module) -> None:
    manager_of = getattr(module, "get_listener_manager", None)
    if manager_of is None or getattr(manager_of, "podium_listens", False):
        return

    @functools.wraps(manager_of)
    def get_listener_manager():
        manager = manager_of()
        try:
            _listen(manager)
        except Exception:  # noqa: BLE001, S110
            pass
        return manager

    get_listener_manager.podium_listens = True
    module.get_listener_manager = get_listener_manager


def _listen(manager) -> None:
    listener = _listener()
    if manager.pm.is_registered(listener):
        return
    manager.pm.register(listener, name="podium")
    type(manager).has_listeners = property(
        lambda self: any(known is not listener for known in self.pm.get_plugins())
    )


@functools.cache
def _listener():
    from pluggy import HookimplMarker

    hookimpl = HookimplMarker("airflow")

    class Listener:
        # Only arguments that every release passes.
        @hookimpl
        def on_dag_run_running(self, dag_run):
            _tell("dag_run.started", _of_run, dag_run)

        @hookimpl
        def on_dag_run_success(self, dag_run):
            _tell("dag_run.succeeded", _of_run, dag_run)

        @hookimpl
        def on_dag_run_failed(self, dag_run):
            _tell("dag_run.failed", _of_run, dag_run)

        @hookimpl
        def on_task_instance_failed(self, task_instance):
            _tell("task.failed", _of_task, task_instance)

    return Listener()


def interrupted(task_instance) -> None:
    """Tells that the process that ran a task is gone, and that the task is started again."""
    if _SPOOL:
        _tell("task.interrupted", _of_task, task_instance)


def _of_run(run):
    kind = getattr(run, "run_type", None)
    return {
        "dag_id": run.dag_id,
        "run_id": run.run_id,
        "run_type": getattr(kind, "value", kind),
        "started_at": _time(getattr(run, "start_date", None)),
        "ended_at": _time(getattr(run, "end_date", None)),
    }


def _of_task(task):
    return {
        "dag_id": task.dag_id,
        "run_id": task.run_id,
        "task_id": task.task_id,
        "map_index": _count(getattr(task, "map_index", None)),
        "try_number": _count(getattr(task, "try_number", None)),
        "max_tries": _count(getattr(task, "max_tries", None)),
    }


def _time(at):
    return None if at is None else at.isoformat()


def _count(number):
    # A task that is not mapped has the index -1.
    return number if isinstance(number, int) and 0 <= number < 2**32 else None


def _tell(event, describe, about) -> None:
    try:
        fields = {name: value for name, value in describe(about).items() if value is not None}
        text = json.dumps({"event": event, **fields}, ensure_ascii=False, separators=(",", ":"))
        # The first line break ends what an interrupted write may have left.
        line = b"\n" + text.encode() + b"\n"
        if len(line) > _MOST_LINE or not _append(line):
            _drop()
    except Exception:  # noqa: BLE001
        _drop()


def _append(line: bytes) -> bool:
    """Appends a line to the last segment, or to a new one if that is full; returns whether there was room."""
    segments = sorted(int(name) for name in os.listdir(_SPOOL) if _SEGMENT.fullmatch(name))
    segment = segments[-1] if segments else 0
    if not segments or os.stat(_path(segment), follow_symlinks=False).st_size >= _MOST_SEGMENT:
        if len(segments) >= _MOST_SEGMENTS:
            return False
        # Numbers go up, also after the directory was emptied.
        segment = max(time.time_ns() // 1_000_000, segment + 1)
    return _write(_path(segment), line) == len(line)


def _drop() -> None:
    """Counts an event that could not be told: one byte for each."""
    try:
        path = os.path.join(_SPOOL, _DROPPED)
        if not os.path.lexists(path) or os.stat(path, follow_symlinks=False).st_size < _MOST_DROPPED:
            _write(path, b".")
    except Exception:  # noqa: BLE001, S110
        pass


def _path(segment: int) -> str:
    return os.path.join(_SPOOL, f"{segment:016d}")


def _write(path: str, data: bytes) -> int:
    # One write of a few bytes at the end of a file is never mixed with that of another process.
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    file = os.open(path, flags, 0o600)
    try:
        return os.write(file, data)
    finally:
        os.close(file)
