#!/bin/sh
# Writes the lock files anew from pyproject.toml: exact versions and sha256 of everything the README's commands install.
# Needs uv (pip install uv). With --upgrade, the newest versions that pyproject.toml allows; without, only what must change.
set -eu
cd "$(dirname "$0")/../.."

for cuda in cuda13 cuda12; do
    case $cuda in
        cuda13) lock=workflow/envs/requirements.lock ;;
        *) lock=workflow/envs/requirements-$cuda.lock ;;
    esac
    uv pip compile pyproject.toml --extra nvcc --extra "$cuda" --extra test --group build \
        --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate \
        --custom-compile-command "sh workflow/envs/lock.sh" --quiet --output-file "$lock" "$@" >/dev/null
done
