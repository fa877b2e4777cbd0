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
elif [ -d "$root/run/systemd/system" ]; then
	# Without host.json, someone has put the proxy before kubelet by hand.
	listen=$(systemctl show --property=Listen wasmproxy.socket)
	listen=${listen#Listen=} # PATH (Stream)
	listen=${listen%% (*}
	listen=${listen:-/run/wasmproxy/wasmproxy.sock}
	connected=
	while read -r _ _ _ _ _ state _ path; do # 03 is connected
		[ "$state $path" != "03 $listen" ] || connected=yes
	done </proc/net/unix
	if [ -n "$connected" ]; then
		echo "wasmproxy is not removed: something, probably kubelet, is connected to $listen, and there is no $root/var/lib/wasmproxy/host.json to undo that by." >&2
		echo "Give kubelet the container runtime's endpoint, restart it, and remove the package again. ss -xp shows who is connected." >&2
		exit 1
	fi
fi
if [ -d "$root/run/systemd/system" ]; then
	systemctl disable --now wasmproxy.socket wasmproxy.service
fi
