# Builds of both builders: an upload, steps that run, and a step that fails.
dir=$(mktemp -d)
echo hello >"$dir/greeting"
head -c 3000000 /dev/zero >"$dir/large"
cat >"$dir/Dockerfile" <<'F'
FROM busybox
COPY greeting large /
ARG WHO=nobody
RUN echo "for $WHO" >>/greeting
LABEL a=b
CMD ["cat", "/greeting"]
F
cp /bin/busybox "$dir/static"
printf 'FROM scratch\nCOPY static /echo\nENTRYPOINT ["/echo", "from"]\n' >"$dir/Scratch"
printf 'FROM busybox\nRUN echo no; exit 3\n' >"$dir/Failing"
export DOCKER_BUILDKIT=0
run docker build --no-cache --network none --build-arg WHO=me -t built "$dir"
run docker run --rm built
run docker image inspect -f '{{.Config.Labels}} {{.Config.Cmd}}' built
run docker build --no-cache --network none --rm --force-rm -f "$dir/Failing" "$dir"
run docker build --no-cache - <"$dir/Failing"
export DOCKER_BUILDKIT=1
run docker build --no-cache -q -t built-again -f "$dir/Scratch" "$dir"
run docker run --rm built-again scratch
run docker rmi built built-again | grep -v '^Deleted'
