#!/usr/bin/env bash
# Installs the build folder named, builds the consumer against it, runs it.
set -euo pipefail
build=$1
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
rm -rf "$build/installed" "$build/consumer"
cmake --install "$build" --prefix "$build/installed" >/dev/null
cmake -S "$here" -B "$build/consumer" -G Ninja "-DCMAKE_PREFIX_PATH=$build/installed" >/dev/null
cmake --build "$build/consumer"
"$build/consumer/consumer"
