# What each script begins with. It says how each command ended.
run() {
  "$@"
  echo "exit $?"
}

# await WORDS FILE waits until a file has the words.
await() {
  until grep -qs "$1" "$2"; do sleep 0.05; done
}
