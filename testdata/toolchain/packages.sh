# packages.sh is sourced. install_packages NAME... installs those of Debian's
# packages that are not there, for which it must be root. It removes none: one that
# conflicts with what is installed is an error. The archive is asked for its lists only
# if an installation without that fails.

missing_packages() {
	local p
	for p; do
		[ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || echo "$p"
	done
}

install_packages() {
	local wanted
	wanted=$(missing_packages "$@")
	[ -n "$wanted" ] || return 0
	if [ "$(id -u)" != 0 ]; then
		echo "$(basename "$0"): install these packages first:" $wanted >&2
		return 1
	fi
	export DEBIAN_FRONTEND=noninteractive
	apt_install $wanted && return
	apt-get -q -o DPkg::Lock::Timeout=600 update >&2 && apt_install $wanted
}

apt_install() { apt-get -q -o DPkg::Lock::Timeout=600 install -y --no-remove --no-install-recommends "$@" >&2; }
