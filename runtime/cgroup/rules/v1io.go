package rules

import (
	"cmp"
	"math"
	"strconv"
	"strings"
)

// bfqWeight has the default in one file and the devices' in another.
var bfqWeight = weights("blkio.bfq.weight", "Linux 5.0 with CONFIG_BFQ_GROUP_IOSCHED", asIs, asIs)

func asIs(weight int64) int64 { return weight }

// blkioWeight is that of the CFQ scheduler, 10 to 1000, in runc's proportion.
var blkioWeight = weights("blkio.weight", "the CFQ scheduler of Linux before 5.0; set io.bfq.weight for BFQ's",
	func(w int64) int64 { return 10 + (w-1)*990/9999 }, func(b int64) int64 { return 1 + (b-10)*9999/990 })

// weights are a default weight and devices' in v1. to and from convert them.
func weights(name, needs string, to, from func(int64) int64) *V1 {
	devices := name + "_device"
	return &V1{
		Names: []string{name, devices}, Optional: []string{devices}, Needs: needs,
		Read: func(held Held) (string, error) {
			lines := []string{"default " + convert(held[name], from)}
			for device, weight := range devicesIn(held[devices]) {
				if device == "default" { // the kernel repeats it there
					continue
				}
				lines = append(lines, device+" "+convert(weight, from))
			}
			return strings.Join(lines, "\n"), nil
		},
		Writes: func(value string, held Held) (writes []Write, err error) {
			for line := range strings.SplitSeq(value, "\n") {
				of, weight, _ := strings.Cut(line, " ")
				if of == "default" {
					writes = append(writes, held.change(name, convert(weight, to)))
				} else { // BFQ refuses 0, and both schedulers take the word default
					writes = append(writes, held.device(devices, of, convert(weight, to), "default"))
				}
			}
			return writes, nil
		},
		round: func(value string) string {
			of, weight, _ := strings.Cut(value, " ")
			return of + " " + convert(convert(weight, to), from)
		},
	}
}

// convert converts a number, and leaves other text as it is.
func convert(text string, by func(int64) int64) string {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return text
	}
	return strconv.FormatInt(by(n), 10)
}

// throttleFiles are in the order of ioKeys.
var throttleFiles = []string{
	"blkio.throttle.read_bps_device", "blkio.throttle.write_bps_device", "blkio.throttle.read_iops_device", "blkio.throttle.write_iops_device",
}

// throttle is io.max in four files, in which 0 is no limit.
var throttle = &V1{
	Names: throttleFiles, Needs: "CONFIG_BLK_DEV_THROTTLING",
	Read: func(held Held) (string, error) {
		var devices []string
		limits := map[string][]string{}
		for i, name := range throttleFiles {
			for device, limit := range devicesIn(held[name]) {
				if limit == "0" {
					continue
				}
				if limits[device] == nil {
					devices = append(devices, device)
					limits[device] = []string{"max", "max", "max", "max"}
				}
				limits[device][i] = limit
			}
		}
		for i, device := range devices {
			for k, key := range ioKeys {
				devices[i] += " " + key + "=" + limits[device][k]
			}
		}
		return strings.Join(devices, "\n"), nil
	},
	Writes: func(value string, held Held) (writes []Write, err error) {
		for line := range strings.SplitSeq(value, "\n") {
			device, limits, _ := strings.Cut(line, " ")
			for i, key := range ioKeys {
				limit, given := keyIn(limits, key)
				if !given {
					continue
				}
				if limit = capped(key, limit); limit == "max" {
					limit = "0"
				}
				writes = append(writes, held.device(throttleFiles[i], device, limit, "0"))
			}
		}
		return writes, nil
	},
}

// device changes the line of a device. none is what it has without a line.
func (h Held) device(name, device, value, none string) Write {
	_, before, _ := strings.Cut(lineOf(device, keyedLines(h[name])), " ")
	return Write{name, device + " " + value, device + " " + cmp.Or(before, none)}
}

// devicesIn goes through the lines of a text, each a device and a value.
func devicesIn(text string) func(yield func(device, value string) bool) {
	return func(yield func(string, string) bool) {
		for line := range strings.Lines(text) {
			device, value, two := strings.Cut(strings.TrimSpace(line), " ")
			if two && !yield(device, value) {
				return
			}
		}
	}
}

// keyIn returns the value of KEY=VALUE among words.
func keyIn(words, key string) (value string, ok bool) {
	for word := range strings.FieldsSeq(words) {
		if k, v, _ := strings.Cut(word, "="); k == key {
			return v, true
		}
	}
	return "", false
}

// capped is a limit as the kernel keeps it: operations a second are 32 bits and RDMA's numbers
// 31, of which the largest is no limit. Of io.latency 0 is none.
func capped(key, limit string) string {
	n, err := strconv.ParseUint(limit, 10, 64)
	switch {
	case err != nil:
	case strings.HasSuffix(key, "iops") && n >= math.MaxUint32, strings.HasPrefix(key, "hca") && n >= math.MaxInt32:
		return "max"
	case key == "target" && n == 0:
		return "max"
	}
	return limit
}
