# Files into a container and out of it, as files and as a stream.
dir=$(mktemp -d)
head -c 4000000 /dev/zero >"$dir/large"
echo hello >"$dir/greeting"
run docker create --name cp busybox sh -c 'cat /tmp/greeting; wc -c /tmp/large'
run docker cp "$dir/large" cp:/tmp/
run docker cp "$dir/greeting" cp:/tmp/greeting
run docker start -a cp
docker diff cp | sort
run docker cp cp:/tmp/greeting "$dir/back"
cmp "$dir/greeting" "$dir/back"
run docker cp cp:/tmp/large - | tar -xO | sha1sum | cut -c1-20
tar -C "$dir" -cf - greeting | run docker cp - cp:/root
run docker cp cp:/root/greeting - | tar -t
run docker cp cp:/no/such/file "$dir/none"
run docker cp "$dir/none" cp:/
docker export cp | tar -t | grep -c greeting
run docker rm cp
