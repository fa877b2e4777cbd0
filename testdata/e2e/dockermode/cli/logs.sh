# Logs that are followed while they are written, and parts of them.
run docker run -d --name logs busybox sh -c 'for i in 1 2 3; do echo out $i; sleep 0.3; done; exit 4'
run docker logs -f logs
run docker wait logs
run docker logs --tail 1 logs
run docker logs -t --tail 2 logs
run docker logs --since 1h logs
run docker run -d --name logs-large busybox sh -c 'yes 0123456789 | head -n 200000'
# Docker 20.10 itself loses lines for a reader that is behind when the container ends.
run docker wait logs-large
docker logs -f logs-large | sha1sum | cut -c1-20
run docker run -d --name logs-endless busybox sh -c 'while echo tick; do sleep 0.1; done'
docker logs -f logs-endless | head -n 3
run docker logs no-such-container
run docker rm -f logs logs-large logs-endless
