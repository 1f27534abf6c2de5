"""Parses a folder of DAGs once, aside: nothing of it is live, and nothing is written to the metadata database.

Prints what it found as one JSON document. What the DAGs themselves print goes to the error output.
"""

import json
import os
import sys
import threading

MOST_DAGS = 5000
MOST_ERRORS = 500
LONGEST_ID = 300
LONGEST_FILE = 1000
LONGEST_TRACEBACK = 8000


def give_up_after(seconds):
    """The control plane ends it sooner, unless it has died in the meantime."""
    timer = threading.Timer(seconds, os._exit, [3])
    timer.daemon = True
    timer.start()


def parse(folder):
    try:
        from airflow.dag_processing.dagbag import DagBag
    except ImportError:
        # Before Airflow 3.2.
        from airflow.models.dagbag import DagBag
    # As Airflow does: modules next to the DAGs can be imported.
    if folder not in sys.path:
        sys.path.append(folder)
    return DagBag(folder)


def main():
    folder, seconds = sys.argv[1], float(sys.argv[2])
    give_up_after(seconds)
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    # As in the processes that parse: variables and connections are looked up in the metadata database, too.
    os.environ["_AIRFLOW_PROCESS_CONTEXT"] = "server"
    os.environ["AIRFLOW__CORE__LOAD_EXAMPLES"] = "False"
    bag = parse(folder)
    dags = [
        {"dag_id": dag.dag_id[:LONGEST_ID], "fileloc": str(dag.fileloc)[:LONGEST_FILE]}
        for dag in list(bag.dags.values())[:MOST_DAGS]
    ]
    errors = [
        {"filename": os.path.join(folder, str(file))[:LONGEST_FILE], "stack_trace": str(trace)[-LONGEST_TRACEBACK:]}
        for file, trace in list(bag.import_errors.items())[:MOST_ERRORS]
    ]
    json.dump({"dags": dags, "import_errors": errors}, answer)
    answer.flush()
    # Threads that the DAGs have left behind are not waited for.
    os._exit(0)


if __name__ == "__main__":
    main()
