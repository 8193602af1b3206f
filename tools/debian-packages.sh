#!/bin/sh
# Usage: debian-packages.sh PACKAGE...
#
# Installs the packages that are missing. Where that is impossible (no root, not Debian, no
# network) it says what was left out and succeeds: what depends on them is skipped with a reason.
# No daemon that a package brings is started, now or at the next boot.
set -eu

POLICY=/usr/sbin/policy-rc.d

left_out() {
    echo "Left out$missing: $1." >&2
    exit 0
}

missing=
for package; do
    status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$status" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
command -v apt-get >/dev/null || left_out "this is not a Debian system"
[ "$(id -u)" -eq 0 ] || left_out "installing needs root (apt-get install$missing)"

# invoke-rc.d asks this file; 101 means "do not start". A machine's own policy is left alone.
if [ ! -e "$POLICY" ]; then
    trap 'rm -f "$POLICY"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    printf '#!/bin/sh\nexit 101\n' >"$POLICY"
    chmod 755 "$POLICY"
fi

export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
install() {
    apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=120 "$@"
}

echo "Installing$missing"
log=$(mktemp)
wanted=$missing
missing=
# shellcheck disable=SC2086 # one word per package
if ! { install $wanted || { apt-get update -qq && install $wanted; }; } >"$log" 2>&1; then
    # One package this release lacks must not cost the others.
    for package in $wanted; do
        install "$package" >>"$log" 2>&1 || missing="$missing $package"
    done
fi

for package in $wanted; do
    dpkg -L "$package" 2>/dev/null | sed -n 's|^/etc/init\.d/||p' | while read -r service; do
        update-rc.d "$service" disable >/dev/null 2>&1 || true
    done
done

[ -z "$missing" ] || tail -n 20 "$log" >&2
rm -f "$log"
[ -z "$missing" ] || left_out "apt-get failed, see above"
