"""Removes the history of an environment from before a time: DAG runs, what belongs to them, and old log files.

Runs that are under way are never touched: the oldest of them holds everything back that is newer. Prints what came of it as
one JSON document.
"""

import inspect
import json
import logging
import os
import sys
import threading
from datetime import datetime, timezone

# History only: DAGs, their versions and triggers that tasks wait for are not. What a version of Airflow does not have is
# skipped.
TABLES = [
    "dag_run",
    "task_instance",
    "task_instance_history",
    "task_reschedule",
    "task_fail",
    "xcom",
    "_xcom_archive",
    "log",
    "job",
    "sla_miss",
    "asset_event",
    "dataset_event",
    "celery_taskmeta",
    "celery_tasksetmeta",
    "session",
]
BATCH = 10_000
# In the environment's home, while a clean-up is under way: the archives that were there before.
BEFORE = ".podium_clean_up.json"


def give_up_after(seconds):
    """The control plane ends it sooner, unless it has died in the meantime."""
    timer = threading.Timer(seconds, os._exit, [3])
    timer.daemon = True
    timer.start()


def oldest_under_way():
    """When the oldest run that has not ended began, or its oldest task: a run that is repeated begins anew, and its tasks
    that are not repeated do not."""
    from airflow.models.dagrun import DagRun
    from airflow.models.taskinstance import TaskInstance
    from airflow.utils.session import create_session
    from sqlalchemy import and_, func, select

    with create_session() as session:
        under_way = DagRun.state.in_(["queued", "running"])
        is_of_run = and_(TaskInstance.dag_id == DagRun.dag_id, TaskInstance.run_id == DagRun.run_id)
        tasks = select(func.min(TaskInstance.start_date)).join(DagRun, is_of_run).where(under_way)
        began = [session.scalar(select(func.min(DagRun.start_date)).where(under_way)), session.scalar(tasks)]
        return min((time for time in began if time is not None), default=None)


def count_runs(before):
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from sqlalchemy import func, select

    with create_session() as session:
        return session.scalar(select(func.count()).select_from(DagRun).where(DagRun.start_date < before))


def archives():
    """The tables that rows are moved to before they are deleted, which users may keep, too."""
    from airflow.utils.session import create_session
    from sqlalchemy import inspect as inspected

    with create_session() as session:
        names = inspected(session.get_bind()).get_table_names()
    return {name for name in names if name.startswith("_airflow_deleted__")}


def drop_leftovers():
    """Drops what a clean-up that was killed has left: the archives that were not there when it began."""
    from airflow.utils.session import create_session
    from sqlalchemy import text

    present = archives()
    try:
        with open(BEFORE) as file:
            kept = set(json.load(file))
    except (OSError, ValueError):
        kept = present
    with create_session() as session:
        for name in sorted(present - kept):
            session.execute(text(f'DROP TABLE "{name}"'))
    with open(BEFORE, "w") as file:
        json.dump(sorted(present & kept), file)


class Failures(logging.Handler):
    """Collects the tables that could not be cleaned, which older versions only log."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.tables = set()

    def emit(self, record):
        if str(record.msg).startswith("Encountered error"):
            self.tables.update(str(name) for name in record.args or ())


def clean_tables(before):
    """Cleans one table after the other; returns those that could not be cleaned."""
    from airflow.utils import db_cleanup

    known = inspect.signature(db_cleanup.run_cleanup).parameters
    newer = {"batch_size": BATCH, "error_on_cleanup_failure": True}
    options = {name: value for name, value in newer.items() if name in known}
    failures = Failures()
    if "error_on_cleanup_failure" not in known:
        db_cleanup.logger.addHandler(failures)
    for table in TABLES:
        if table not in db_cleanup.config_dict:
            continue
        try:
            db_cleanup.run_cleanup(
                clean_before_timestamp=before, table_names=[table], confirm=False, skip_archive=True, **options
            )
        except Exception as error:
            print(f"{table}: {error}", file=sys.stderr)
            failures.tables.add(table)
    return sorted(failures.tables)


def remove_files(folder, before):
    """Removes files that were not written to since then, and folders that have been empty since then."""
    removed = 0
    for path, folders, files in os.walk(folder, topdown=False):
        for name in files:
            file = os.path.join(path, name)
            try:
                if os.lstat(file).st_mtime < before:
                    os.unlink(file)
                    removed += 1
            except OSError:
                pass
        for name in folders:
            empty = os.path.join(path, name)
            try:
                if os.lstat(empty).st_mtime < before:
                    os.rmdir(empty)
            except OSError:
                pass
    return removed


def main():
    before = datetime.fromtimestamp(int(sys.argv[1]) / 1000, timezone.utc)
    give_up_after(float(sys.argv[2]))
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    # As in the processes of the platform: the metadata database may be used.
    os.environ["_AIRFLOW_PROCESS_CONTEXT"] = "server"
    under_way = oldest_under_way()
    is_held_back = under_way is not None and under_way < before
    if is_held_back:
        before = under_way
    drop_leftovers()
    runs = count_runs(before)
    failed = clean_tables(before)
    os.unlink(BEFORE)
    report = {
        "runs": max(0, runs - count_runs(before)),
        "files": sum(remove_files(folder, before.timestamp()) for folder in sys.argv[3:]),
        "held_back_to": int(before.timestamp() * 1000) if is_held_back else None,
        "failed": failed,
    }
    json.dump(report, answer)
    answer.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
