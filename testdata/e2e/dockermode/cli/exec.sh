# Commands in a running container.
run docker run -d --name exec -e A=1 busybox sleep 1000
run docker exec exec sh -c 'echo out; echo err >&2; exit 3'
printf 'one\ntwo\n' | run docker exec -i exec sh -c 'cat; sleep 0.2; echo after the end of the input'
run docker exec -e B=2 -w /tmp -u 33 exec sh -c 'echo $A $B $PWD $(id -u)'
run docker exec -d exec touch /tmp/made
run docker exec exec sh -c 'until [ -e /tmp/made ]; do sleep 0.05; done; echo made'
run docker exec exec no-such-program
run docker exec no-such-container true
run docker top exec -o pid,comm | sed 's/^[0-9]* */PID /'
run docker stats --no-stream --format '{{.Name}}' exec
run docker stop -t 0 exec
run docker exec exec true
run docker rm exec
