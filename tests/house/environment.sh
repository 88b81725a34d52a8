#!/bin/sh
# Make or renew the environment FOLDER from the hashed lock: environment.sh FOLDER.
# Needs Python 3.11 or newer with venv and nothing else; PYTHON=... names one. Of several the system's own is
# taken: distributions build theirs with optimisations, version managers mostly do not.
set -eu
folder=$1
lock=requirements/dev.lock
minimum="sys.version_info >= (3, 11)"

works() { # it runs, is new enough and can make an environment (a pyenv shim may be there and not run)
    "$1" -c "import sys, venv, ensurepip; sys.exit(not ($minimum))" >/dev/null 2>&1
}

find_python() {
    if [ -n "${PYTHON:-}" ]; then
        works "$PYTHON" && echo "$PYTHON" && return
        echo "PYTHON=$PYTHON does not run, is older than 3.11, or lacks venv." >&2
        return 1
    fi
    names="python3.13 python3.12 python3.11 python3 python python3.14"
    system=${SYSTEM_BIN:-/usr/bin}
    case ":$PATH:" in *":$system:"*)
        for name in $names; do
            if works "$system/$name"; then
                echo "$system/$name"
                return
            fi
        done ;;
    esac
    for name in $names; do
        if works "$name"; then
            echo "$name"
            return
        fi
    done
    echo "midwatch needs Python 3.11 or newer with venv; what was found here:" >&2
    for candidate in python3.14 python3.13 python3.12 python3.11 python3 python; do
        if command -v "$candidate" >/dev/null 2>&1; then
            echo "  $candidate: $("$candidate" -c "import sys; print(sys.version.split()[0]); import venv, ensurepip" 2>&1 | tr '\n' ' ')" >&2
        fi
    done
    echo "Install one (Debian: apt-get install python3 python3-venv), or name one: make PYTHON=/path/to/python3" >&2
    return 1
}

if ! "$folder/bin/python" -c "import sys, pip; sys.exit(not ($minimum))" >/dev/null 2>&1; then
    python=$(find_python)
    echo "Making $folder with $python, $("$python" --version), once."
    "$python" -m venv --clear "$folder"
fi
echo "Installing what $lock names."
install="$folder/bin/python -m pip install --quiet --disable-pip-version-check"
$install --require-hashes -r "$lock"
$install --no-deps --no-build-isolation -e .
