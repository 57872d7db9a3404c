#!/bin/sh
# The compilers, linkers, the second loader and the browser that the tests call. As root on Debian or Ubuntu what is missing is installed; elsewhere
# the names of what is missing are told.
set -eu
missing=
need() { command -v "$1" > /dev/null 2>&1 || missing="$missing $2"; }
need gcc gcc
need g++ g++
need readelf binutils
need ld.gold binutils
need ld.lld lld
need chromium chromium
need chromedriver chromium-driver
[ -e "/lib/ld-musl-$(uname -m).so.1" ] || missing="$missing musl"
[ -z "$missing" ] && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; then
    apt-get update -qq
    # shellcheck disable=SC2086  # a list of packages
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing
else
    echo "the tests need these as well:$missing" >&2
    exit 1
fi
