package conformance

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/abi/spelling"
)

// configLength stands for the length of the configuration, which is known last.
const configLength = "LENGTH"

// untouched is a byte of a buffer that the host wrote nothing to.
const untouched = "aa"

// line is what the program logs of the call: its result, and what is in the buffer.
func (e *encoder) line() (string, error) {
	c := e.call
	name := c.Name()
	switch {
	case c.Trap, name == "fail", name == "abort":
		return "", nil
	case name == "log":
		line, ok := c.Is.(string)
		if !ok {
			return "", fmt.Errorf("log needs the line that comes of it")
		}
		return line, nil
	case c.Error != "":
		errno, _ := abi.ErrnoByName(c.Error) // checked when it was read
		place := 0
		switch name {
		case "get_i64":
			place = 8
		case "random":
			place = int(e.cap())
		}
		return "info: " + strconv.Itoa(int(errno)) + shown(strings.Repeat(untouched, place)), nil
	case c.Length != nil:
		return "info: " + strconv.FormatInt(*c.Length, 10) + shown(strings.Repeat(untouched, int(e.cap()))), nil
	case c.Is == nil:
		return "info: 0", nil
	}

	switch name {
	case "config":
		return "info: " + configLength, nil
	case "random":
		return fmt.Sprintf("info: 0 %v", c.Is), nil
	case "get_i64":
		n, err := spelling.Integer(c.Is)
		return "info: 0 " + hex.EncodeToString(little.AppendUint64(nil, uint64(n))), err
	case "pod_find", "log_level", "now", "feature":
		n, err := spelling.Integer(c.Is)
		return "info: " + strconv.FormatInt(n, 10), err
	}
	b, err := e.bytes(spelling.FormOf[name], c.Is)
	return "info: " + strconv.Itoa(len(b)) + shown(hex.EncodeToString(b)), err
}

func shown(digits string) string {
	if digits == "" {
		return ""
	}
	return " " + digits
}
