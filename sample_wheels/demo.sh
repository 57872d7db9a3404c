#!/bin/sh
# What wheelfix says of the sample wheels, and what it can mend. Run by `make demo`; BIN is the folder of wheelfix.
set -eu
cd "$(dirname "$0")/.."
wheelfix=${BIN:-.venv/bin}/wheelfix
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

say() { printf '\n\n== %s\n\n' "$1"; }
# Runs a command whose exit status is known; any other stops the demo.
run() {
    want=$1; shift
    printf '$ wheelfix %s\n\n' "$*"
    got=0; "$wheelfix" "$@" || got=$?
    printf '\n(exit status %s)\n' "$got"
    [ "$got" = "$want" ] || { echo "demo: expected exit status $want" >&2; exit 1; }
}

say "The gate: six wheels against what their maintainers mean them to be"
run 1 verify --policy sample_wheels/contract.toml sample_wheels/*.whl

say "Mended: the helper library is in the wheel, and no path leads to it"
run 0 repair -w "$out" sample_wheels/sample_helper_no_origin-*.whl
run 0 verify --policy sample_wheels/contract.toml "$out"/*.whl

say "Not mendable without the missing library: blocked, and nothing is written"
run 4 repair -w "$out/none" sample_wheels/sample_helper_missing-*.whl

say "What the healthy wheel holds, and why its tag is not a better one"
run 0 show sample_wheels/sample_healthy-*.whl

say "Next: wheelfix verify YOUR.whl (here: $wheelfix)"
