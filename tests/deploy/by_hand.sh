#!/usr/bin/env bash
# What takes minutes and a Go toolchain, and so is no part of the suite:
#   - kustomize builds both overlays, and what it makes is checked like the files are;
#   - the API server's own library evaluates the policy for Strimzi on pods and on KafkaConnects;
#   - Podman runs the gateway's pod, where podman, runc and catatonit are there (Debian's packages of these names).
#
#   SINKONCE_BIN=build/Release/proxy/sinkonce tests/deploy/by_hand.sh [ARGUMENTS OF unittest]
#   WORK=FOLDER   where the two programs and the schemas go (default build/deploy)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=${WORK:-$here/../../build/deploy}
mkdir -p "$work/bin"
work=$(cd "$work" && pwd)

command -v go >/dev/null || { echo "SKIP: no Go toolchain here"; exit 77; }
[ -x "$work/bin/kustomize" ] ||
    GOBIN=$work/bin go install sigs.k8s.io/kustomize/kustomize/v5@v5.7.1 || { echo "SKIP: kustomize cannot be built"; exit 77; }
if [ "$here/policy/main.go" -nt "$work/bin/policy" ]; then
    # In a copy: go.sum and the modules that others need are written there.
    rm -rf "$work/policy" && cp -r "$here/policy" "$work/policy"
    (cd "$work/policy" && go mod tidy && go build -o "$work/bin/policy" .)
fi
WORK=$work KUSTOMIZE=$work/bin/kustomize POLICY=$work/bin/policy exec "$here/run.sh" --by-hand "$@"
