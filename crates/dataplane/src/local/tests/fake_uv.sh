#!/bin/sh
# Resolves every package to version 1.0 and installs a module of its name, but knows none whose name contains "bad".
case "$2" in
    compile)
        echo resolve >>'@JOURNAL@'
        if grep -q bad requirements.in; then
            echo "error: No solution found when resolving dependencies" >&2
            echo "  cause: Because $(grep bad requirements.in) was not found, your requirements are unsatisfiable." >&2
            exit 1
        fi
        while read -r name; do
            printf '%s==1.0 \\\n    --hash=sha256:%064d\n' "$name" 0
        done <requirements.in >pins.txt
        ;;
    install)
        echo install >>'@JOURNAL@'
        mkdir site
        while read -r line; do echo >"site/${line%%==*}.py"; done <pins.txt
        # One that outlives its job, as after the end of the control plane, once it is in a session of its own.
        if grep -q lingering pins.txt; then
            setsid sh -c "echo \$\$ >'@JOURNAL@.lingering'; exec sleep 100000" </dev/null >/dev/null 2>&1 &
            until [ -s '@JOURNAL@.lingering' ]; do sleep 0.01; done
        fi
        ;;
esac
