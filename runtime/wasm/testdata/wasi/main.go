// Command wasi is a guest that uses what Go's standard library makes of WASI. The
// annotation example.com/do of the container says what it does; what it found
// goes to the annotation example.com/found.
package main

import (
	"crypto/rand"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wasmproxy/wasmproxy/sdk"
)

func main() {}

func init() { sdk.Plugin("wasi", "1.0.0").OnPreCreateContainer(create) }

var garbage [][]byte

func create(c *sdk.PreCreateContainer) error {
	do, _ := c.Annotation("example.com/do")
	switch do {
	case "print":
		fmt.Println("to stdout,\nin two lines")
		fmt.Fprint(os.Stderr, "to stderr, without an end")
	case "panic":
		fmt.Println(garbage[len(do)])
	case "exit":
		fmt.Fprint(os.Stderr, "no tier")
		os.Exit(3)
	case "sleep":
		time.Sleep(time.Hour)
	case "block":
		<-make(chan int)
	case "collect": // 1 MiB of garbage, in a memory of 32
		for range 16 {
			garbage = append(garbage[:0], make([]byte, 64<<10))
		}
	}
	return c.SetAnnotation("example.com/found", find(do))
}

func find(do string) string {
	switch do {
	case "time":
		start := time.Now()
		return fmt.Sprint(start.UnixNano(), time.Since(start) > 0)
	case "random":
		b := make([]byte, 8)
		_, err := rand.Read(b)
		return fmt.Sprintf("%x %v", b, err)
	case "surroundings":
		_, err := os.ReadFile("/etc/passwd")
		return fmt.Sprint(len(os.Args), len(os.Environ()), err)
	case "work": // as plugins do it: maps, strings, sorting
		count := map[string]int{}
		for i := range 1000 {
			count[strconv.Itoa(i*7919%257)]++
		}
		return strings.Join(slices.Sorted(maps.Keys(count)), ",")[:9]
	case "goroutines":
		words := make(chan string)
		go func() { words <- "from a goroutine" }()
		return <-words
	}
	return ""
}
