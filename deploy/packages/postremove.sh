#!/bin/sh
# After files are removed. dpkg: remove, purge and others; rpm: 0 at the removal.
set -e
root=${DPKG_ROOT:-}
if [ -d "$root/run/systemd/system" ]; then
	systemctl daemon-reload
fi
case "$1" in
purge)
	rm -rf "$root/etc/wasmproxy" "$root/etc/systemd/system/wasmproxy.socket.d" "$root/etc/systemd/system/wasmproxy.service.d" "$root/run/wasmproxy" "$root/var/cache/wasmproxy" "$root/var/lib/wasmproxy" "$root/var/log/wasmproxy"
	;;
remove | 0)
	rm -rf "$root/run/wasmproxy" "$root/var/cache/wasmproxy"
	;;
esac
