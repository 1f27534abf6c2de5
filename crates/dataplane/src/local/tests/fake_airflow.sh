#!/bin/sh
# Behaves as Apache Airflow does towards whoever keeps it, and as it is told by files named like its commands.
journal='@JOURNAL@'
told='@TOLD@'
printf '%s|%s|%s|%s|%s|%s\n' "$$" '@VERSION@' "$*" "$AIRFLOW__CORE__PARALLELISM" "$(umask)" "$(ulimit -S -n)" >>"$journal"
if [ -f "$told/$1" ]; then . "$told/$1"; fi
case "$1" in
    api-server | webserver) exec '@PYTHON@' -I -S '@SERVER@' "$told" ;;
    db) exit 0 ;;
    *) exec sleep 100000 ;;
esac
