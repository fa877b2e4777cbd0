# A terminal: its size, input when the container asks for it, and the exit code.
inside='until [ "$(stty size 2>/dev/null)" = "33 77" ]; do sleep 0.05; done; stty -echo; echo ready; read word; echo "got $word"; exit 5'
terminal() { # INPUT COMMAND...
  local seen=$(mktemp) input=$1
  shift
  { await "^ready" "$seen"; printf '%s\n' "$input"; await "^got $input" "$seen"; } | script -qefc "stty rows 33 cols 77; $(printf '%q ' "$@")" "$seen"
  echo "exit $?"
}
terminal hello docker run -it --rm busybox sh -c "$inside"
run docker run -d --name pty busybox sleep 1000
terminal again docker exec -it pty sh -c "$inside"
run docker run -dit --name pty-attached busybox sh -c 'stty -echo; while read word; do echo "got $word"; done'
seen=$(mktemp)
{ await '^ready' "$seen"; printf 'one\n'; await '^got one' "$seen"; printf '\020\021'; } | script -qefc 'stty -echo; echo ready; docker attach pty-attached' "$seen"
echo "exit $?"
run docker inspect -f '{{.State.Running}}' pty-attached
run docker rm -f pty pty-attached
