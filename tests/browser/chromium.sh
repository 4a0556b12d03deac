#!/bin/sh
# Makes sure that there is a Chromium for the browser tests. $1: the playwright command.
set -eu

for name in chromium chromium-browser google-chrome; do
  if command -v "$name" >/dev/null; then exit 0; fi
done

if command -v apt-get >/dev/null; then
  if [ "$(id -u)" = 0 ]; then as_root=""; else as_root="sudo -n"; fi
  if $as_root true 2>/dev/null; then
    export DEBIAN_FRONTEND=noninteractive
    if $as_root apt-get update -qq && $as_root apt-get install -y -qq chromium; then exit 0; fi
  fi
fi

"$1" install chromium
