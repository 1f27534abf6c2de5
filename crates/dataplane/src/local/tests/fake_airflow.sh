#!/bin/sh
# Behaves as Apache Airflow does towards whoever keeps it, and as it is told by files named like its commands.
journal='@JOURNAL@'
told='@TOLD@'
case "$1" in
    */podium_launch.py) shift ;;
    */podium_database.py) exit 0 ;;
    */podium_check.py)
        # Its DAG is in one file, and cannot be imported if that says so.
        echo "$PYTHONPATH" >>"$told/../checked"
        dags='' errors=''
        if grep -q breaks "$2/dag.py"; then
            errors="{\"filename\": \"$2/dag.py\", \"stack_trace\": \"File \\\"$2/dag.py\\\", line 2\\nImportError: no\"}"
        else
            dags="{\"dag_id\": \"hello\", \"fileloc\": \"$2/dag.py\"}"
        fi
        printf '%s\n' "{\"dags\": [$dags], \"import_errors\": [$errors]}"
        exit 0
        ;;
    */podium_clean_up.py)
        echo "$2" >>"$told/../cleaned_up"
        while [ -e "$told/cleaning" ]; do sleep 0.02; done
        if [ -e "$told/unclean" ]; then exit 1; fi
        printf '%s\n' '{"runs": 3, "files": 7, "held_back_to": null, "failed": []}'
        exit 0
        ;;
esac
printf '%s|%s|%s|%s|%s|%s\n' "$$" '@VERSION@' "$*" "$AIRFLOW__CORE__PARALLELISM" "$(umask)" "$(ulimit -S -n)" >>"$journal"
if [ -f "$told/$1" ]; then . "$told/$1"; fi
case "$1" in
    api-server | webserver) exec '@PYTHON@' -I -S '@SERVER@' "$told" ;;
    db) exit 0 ;;
    scheduler)
        # Its tasks run for as long as a file says so.
        while :; do
            if [ -s "$PODIUM_DRAIN" ] && [ ! -e "$told/busy" ]; then cp "$PODIUM_DRAIN" "$PODIUM_STATUS/drained"; fi
            sleep 0.02
        done
        ;;
    celery)
        touch "$PODIUM_STATUS/$PODIUM_COMPONENT.progress"
        exec sleep 100000
        ;;
    *) exec sleep 100000 ;;
esac
