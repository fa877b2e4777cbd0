#!/bin/sh
# Before files are removed. dpkg: remove, upgrade or deconfigure; rpm: 0 at the removal, 1 at an upgrade.
# kubelet cannot start a pod through a proxy that is gone, so a failure keeps the package.
set -e
case "$1" in
remove | 0) ;;
*) exit 0 ;;
esac
root=${DPKG_ROOT:-}
if [ -e "$root/var/lib/wasmproxy/host.json" ]; then
	if [ -d "$root/run/systemd/system" ]; then
		wasmproxy host uninstall --yes --restart-kubelet
	else
		"$root/usr/bin/wasmproxy" host uninstall --yes --root "${root:-/}"
	fi
fi
if [ -d "$root/run/systemd/system" ]; then
	systemctl disable --now wasmproxy.socket wasmproxy.service
fi
