#!/bin/busybox sh
# Process 1 of the initial file system: loads the drivers and hands over to systemd on the disk.
export PATH=/bin
busybox mount -t devtmpfs dev /dev
for module in $(busybox cat /modules/order); do busybox insmod "$module" 2> /dev/null; done
until busybox mount -t ext4 /dev/vda /root; do busybox sleep 0.1; done
busybox umount /dev
exec busybox switch_root /root /sbin/init
