# Events as they come, and those that have been.
format='{{.Type}} {{.Action}} {{.Actor.Attributes.name}} {{.Actor.Attributes.exitCode}}'
since=$(date +%s.%N)
live=$(mktemp)
docker events --since "$since" --filter container=events --format "$format" >"$live" &
run docker run --rm --name events busybox sh -c 'exit 3'
await destroy "$live"
kill $!
wait $!
echo "exit $?"
cat "$live"
run docker events --since "$since" --until "$(date +%s.%N)" --filter container=events --format "$format"
