# Resources at the creation, and updates that the kernel and inspect show.
format='{{.HostConfig.CpuShares}} {{.HostConfig.CpuQuota}} {{.HostConfig.CpuPeriod}} {{.HostConfig.NanoCpus}} {{.HostConfig.Memory}} {{.HostConfig.CpusetCpus}} {{.HostConfig.PidsLimit}} {{.HostConfig.RestartPolicy.Name}}'
kernel='cd /sys/fs/cgroup && cat cpu/cpu.shares cpu/cpu.cfs_quota_us memory/memory.limit_in_bytes cpuset/cpuset.cpus'
run docker run -d --name update --cpu-shares 300 --memory 100m --cpuset-cpus 0 --label io.kubernetes.docker.type=other busybox sleep 1000
run docker exec update sh -c "$kernel"
run docker update --cpu-shares 512 --cpu-period 100000 --cpu-quota 30000 --memory 64m --memory-swap 64m --cpuset-cpus 0-1 update
run docker exec update sh -c "$kernel"
run docker inspect -f "$format" update
run docker update --restart on-failure:3 update
run docker inspect -f "$format" update
run docker update --memory 1m update
run docker update --cpuset-cpus 99 update
run docker update --cpu-quota 5 no-such-container
run docker update --cpu-quota -1 update
run docker run -d --name update-cpus --cpus 0.5 busybox sleep 1000
run docker update --cpu-quota 5000 update-cpus
run docker inspect -f "$format" update-cpus
run docker rm -f update update-cpus
