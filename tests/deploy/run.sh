#!/usr/bin/env bash
# Checks the manifests of conf/kubernetes and conf/strimzi (manifests.py, and by_hand.py for by_hand.sh).
#   WORK=FOLDER   where the package with Kubernetes' schemas goes (22 MB, once); PYTHON: with which Python
# Exits with 77 and the reason where that package cannot be had.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=${WORK:?}
python=${PYTHON:-python3}
mkdir -p "$work"

if ! [ -e "$work/ready" ]; then
    rm -rf "$work/venv"
    "$python" -m venv "$work/venv" >"$work/venv.log" 2>&1 || { tail -n 2 "$work/venv.log"; echo "SKIP: a virtual environment cannot be made"; exit 77; }
    "$work/venv/bin/pip" install -q --disable-pip-version-check kubernetes-validate==1.37.0 >"$work/pip.log" 2>&1 ||
        { tail -n 2 "$work/pip.log"; echo "SKIP: kubernetes-validate cannot be fetched"; exit 77; }
    touch "$work/ready"
fi
exec "$work/venv/bin/python" -B "$here/manifests.py" "$@"
