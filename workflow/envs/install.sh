#!/bin/sh
# Makes .venv with exactly what the lock file names, and this project in it; does nothing where that is done already.
# Usage: sh workflow/envs/install.sh [cuda13 | cuda12]
#   cuda13 (at first the default) or cuda12: the CuPy for the CUDA version of the driver, as nvidia-smi prints it.
#   Without it, a later call keeps what was chosen. PYTHON=... picks the interpreter.
# Needs python3 >= 3.11 with venv (Debian and Ubuntu: apt install python3 python3-venv); no compiler, no activation.
set -eu
cd "$(dirname "$0")/../.."

say() { echo "install.sh: $*" >&2; }

if [ "$(uname -s)" != Linux ]; then
    say "this runs on Linux, WSL2 included, not on $(uname -s)"
    exit 2
fi

cuda=${1:-$(cat .venv/cuda 2>/dev/null || echo cuda13)}
case $cuda in
    cuda13) lock=workflow/envs/requirements.lock ;;
    cuda12) lock=workflow/envs/requirements-cuda12.lock ;;
    *) say "unknown choice '$cuda': cuda13 or cuda12"; exit 2 ;;
esac

python=
for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        python=$candidate
        break
    fi
done
if [ -z "$python" ]; then
    say "needs Python 3.11 or newer, and ${PYTHON:-python3} is not; PYTHON=/path/to/python3.12 sh $0 picks another"
    exit 2
fi

# The folder belongs to the stamp since scripts in .venv/bin name it: a moved checkout gets a new environment.
stamp="$(sha256sum < $lock) $(pwd) $("$python" -c 'import sys; print(sys.version)' | tr '\n' ' ')"
if [ "$(cat .venv/stamp 2>/dev/null)" != "$stamp" ]; then
    say "making .venv for $("$python" --version), $cuda: a few minutes and some 2 GB of disk, once"
    "$python" -m venv --clear .venv || { say "Debian and Ubuntu: apt install python3-venv"; exit 2; }
    export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PIP_REQUIRE_VIRTUALENV=1
    pip() { .venv/bin/python -m pip "$@"; }
    # Writes the lock's entries of the packages named.
    entries() { awk -v names=" $* " '/^[a-z0-9]/ { split($1, part, "=="); keep = index(names, " " part[1] " ") } keep' $lock; }

    entries setuptools > .venv/build.lock
    pip install --require-hashes --no-deps --only-binary :all: -r .venv/build.lock
    # No wheels: connection-pool is pure Python; immutables lacks them from Python 3.14 on, where `true` in the place of a
    # compiler leaves out its extension, and its own Python code is used. Not cached, lest other projects get that build.
    entries connection-pool immutables > .venv/build.lock
    CC=true LDSHARED=true pip install --require-hashes --no-deps --no-build-isolation --use-pep517 --no-cache-dir -r .venv/build.lock
    pip install --require-hashes --no-deps --only-binary :all: -r $lock
    pip check
    echo "$cuda" > .venv/cuda
    echo "$stamp" > .venv/stamp
fi

project=$(sha256sum < pyproject.toml)
if [ "$(cat .venv/project 2>/dev/null)" != "$project" ]; then
    .venv/bin/python -m pip install --disable-pip-version-check --quiet --no-deps --no-build-isolation -e .
    echo "$project" > .venv/project
fi
