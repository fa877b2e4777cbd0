#!/bin/sh
# After files are unpacked. dpkg: configure [VERSION BEFORE]; rpm: 1 at the first install, 2 at an upgrade.
set -e
case "$1" in
configure | 1 | 2) ;;
*) exit 0 ;;
esac
if [ -d "${DPKG_ROOT:-}/run/systemd/system" ]; then
	systemctl daemon-reload
fi
for unit in wasmproxy.service wasmproxy.socket; do
	if [ -e "${DPKG_ROOT:-}/etc/systemd/system/$unit" ]; then
		echo "/etc/systemd/system/$unit hides the unit of this package. If wasmproxy host install wrote it, run /usr/bin/wasmproxy host install, which removes it. Otherwise remove it by hand."
	fi
done
if [ "$1" = 1 ] || [ "$1$2" = configure ]; then
	cat <<'TEXT'
wasmproxy is installed, and nothing uses it yet. To start it and to make kubelet call it:
    wasmproxy host install --dry-run           # shows each change
    wasmproxy host install --restart-kubelet   # asks before it changes anything
TEXT
elif [ -d "${DPKG_ROOT:-}/run/systemd/system" ] && systemctl --quiet is-active wasmproxy.service; then
	# If the new program does not accept the settings or plugins, the one from before goes on.
	if ! "${DPKG_ROOT:-}/usr/bin/wasmproxy" validate --config /etc/wasmproxy/wasmproxy.yaml >/dev/null; then
		echo 'wasmproxy goes on with the program from before the upgrade until its process ends, as at a reboot: then the new one starts, or fails. Correct what is said above, then: systemctl restart wasmproxy'
	elif ! systemctl restart wasmproxy.service; then
		journalctl --unit wasmproxy.service --lines 5 --no-pager --output cat || true
		echo 'wasmproxy does not start, and kubelet cannot start pods until it does. The lines of its log above say why. Correct that, or install the package from before. systemd starts it again and again.'
	elif [ -e "${DPKG_ROOT:-}/etc/systemd/system/wasmproxy.service" ]; then # it may name another program
		echo 'wasmproxy was restarted with the program that /etc/systemd/system/wasmproxy.service names.'
	else
		echo 'wasmproxy serves with the new program.'
	fi
fi
