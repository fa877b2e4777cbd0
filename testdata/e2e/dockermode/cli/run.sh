# Output, input that ends before the output does, and the ways to fail.
run docker run --rm busybox sh -c 'echo out; echo err >&2; exit 7'
printf 'one\ntwo\n' | run docker run -i --rm busybox sh -c 'cat; sleep 0.2; echo after the end of the input'
head -c 5000000 /dev/zero | run docker run -i --rm busybox wc -c
docker run --rm busybox head -c 5000000 /dev/zero | wc -c
run docker run --rm busybox no-such-program
run docker run --rm no-such-image
run docker run -d --name run-twice busybox sleep 1000
run docker run --name run-twice busybox true
run docker run --rm --memory 1m busybox true
run docker rm -f run-twice
