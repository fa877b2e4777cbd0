# How containers end, and what may not be done to them.
run docker run -d --name stop busybox sh -c 'trap "echo TERM; exit 9" TERM; trap "echo USR1" USR1; echo ready; while :; do sleep 0.05; done'
until docker logs stop | grep -q ready; do sleep 0.05; done
run docker kill -s USR1 stop
until docker logs stop | grep -q USR1; do sleep 0.05; done
run docker rm stop
run docker start stop
run docker pause stop
run docker unpause stop
run docker rename stop stop-renamed
run docker rename stop-renamed stop
run docker stop stop
run docker wait stop
run docker logs stop
run docker stop stop
run docker kill stop
run docker restart -t 0 stop
run docker ps --filter name=stop --format '{{.Names}} {{.Image}}'
run docker kill stop
run docker wait stop
run docker ps -a --filter name=stop --format '{{.Names}} {{.State}}'
run docker rm -f -v stop
for verb in rm start stop kill restart wait; do run docker $verb stop; done
run docker run --rm busybox sh -c 'kill -9 $$'
run docker run -d --name stop-slow busybox sh -c 'trap "" TERM; echo ready; while :; do sleep 0.05; done'
until docker logs stop-slow | grep -q ready; do sleep 0.05; done
run docker stop -t 1 stop-slow
run docker inspect -f '{{.State.ExitCode}}' stop-slow
run docker rm stop-slow
