#!/usr/bin/env bash
# image.sh OUT ROOT PROGRAM...: makes the guest of Debian packages, as root, and installs nothing here.
#
# OUT gets kernel, initrd, disk (an ext4 file system) and key, with which root may log in by ssh.
# ROOT is a directory of files for the guest. Each PROGRAM goes to its /usr/local/bin.
set -euo pipefail
out=$1 files=$2
shift 2
root=$out/root debs=$out/debs initrd=$out/initrd.d

# An empty status makes apt choose all packages of a system from nothing, from this machine's archives.
mkdir -p "$debs/partial"
: > "$debs/status"
fetch() {
	apt-get -o Dir::State::status="$debs/status" -o Dir::Cache::archives="$debs" -o Dir::Cache::pkgcache= \
		-o APT::Sandbox::User=root -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 --quiet --no-install-recommends --download-only --yes install \
		'?essential' systemd-sysv dbus openssh-server iproute2 iptables kmod containernetworking-plugins libglib2.0-0 libyajl2 linux-image-cloud-amd64 tiny-initramfs
}
fetch || { apt-get --quiet update && fetch; }

# The packages' own scripts do not run. Below is the little of them that the guest needs.
mkdir -p "$root"/usr/{bin,sbin,lib,lib64}
for dir in bin sbin lib lib64; do ln -s "usr/$dir" "$root/$dir"; done
for deb in "$debs"/*.deb; do dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$root" --keep-directory-symlink; done
rm -r "$root"/usr/share/{doc,man,locale}
mv "$root"/boot/vmlinuz-* "$out/kernel"
rm -r "$root"/boot/*
for file in passwd group; do cp "$root/usr/share/base-passwd/$file.master" "$root/etc/$file"; done
cp -r "$files/." "$root/"
mkdir -p "$root/etc/kubernetes/manifests" "$root/run" "$root/opt/cni/bin"
install -m 0755 -D -t "$root/usr/local/bin" "$@"
version=$(ls "$root/lib/modules")
mknod -m 0666 "$root/dev/null" c 1 3 # ssh-keygen wants it
chroot "$root" depmod "$version"
chroot "$root" systemd-sysusers
for program in iptables ip6tables; do ln -sf "$program-nft" "$root/usr/sbin/$program"; done # an alternative
chroot "$root" systemctl --quiet enable ssh.service containerd.service network.service
chroot "$root" ssh-keygen -q -t ed25519 -N '' -f /etc/ssh/ssh_host_ed25519_key
chroot "$root" ssh-keygen -q -t ed25519 -N '' -f /key
install -d -m 0700 "$root/root/.ssh"
mv "$root/key.pub" "$root/root/.ssh/authorized_keys"
mv "$root/key" "$out/key"
cp "$root/etc/ssh/ssh_host_ed25519_key.pub" "$out/host-key"

# The initial file system only loads the drivers that the kernel lacks for the disk and the network.
mkdir -p "$initrd"/{bin,dev,modules,root}
cp /bin/busybox "$initrd/bin/"
cp "$(dirname "$0")/init.sh" "$initrd/init"
chmod 0755 "$initrd/init"
chroot "$root" modprobe --set-version="$version" --show-depends -a virtio_pci virtio_blk virtio_net |
	while read -r _ module _; do
		echo "/modules/$(basename "$module")" >> "$initrd/modules/order"
		cp "$root$module" "$initrd/modules/"
	done
(cd "$initrd" && find . | /bin/busybox cpio -o -H newc 2> /dev/null) | gzip -1 > "$out/initrd"

truncate --size=1400M "$out/disk"
mkfs.ext4 -q -O ^has_journal -d "$root" "$out/disk"
rm -r "$root" "$debs" "$initrd"
