// Package dialect is what is peculiar to a container runtime: what kubelet calls, and the program that this runs to make
// containers. Each has one row in Runtimes, which is all that the proxy has of it. Only the members of a verbose status, of all
// runtimes together, are in runtime/pods.
//
// The row is known where the runtime has told its name (Named) or by its socket (At, KnownBy). Elsewhere all rows count
// together (Union, Weights): CRI does not tell which program makes the containers, and what a node's former runtime has
// made is still there when another one answers. So a row must be harmless with other runtimes.
//
// What CRI has for all runtimes is in runtime/cri and runtime/crifield, and Docker's own API is in runtime/docker.
package dialect

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// Named returns the row of a runtime whose answer to Version has this name; an empty one if there is none.
func Named(name string) Runtime { return find(func(r Runtime) bool { return r.Name == name }) }

// At returns the row of the runtime whose socket is at this path; an empty one if there is none.
func At(path string) Runtime { return find(func(r Runtime) bool { return r.Socket == path }) }

// KnownBy returns the row of the runtime as which kubelet treats an endpoint, by its end; an empty one if there is none.
func KnownBy(endpoint string) Runtime {
	return find(func(r Runtime) bool { return r.SocketEnd != "" && strings.HasSuffix(endpoint, r.SocketEnd) })
}

func find(is func(Runtime) bool) Runtime {
	if i := slices.IndexFunc(Runtimes, is); i >= 0 {
		return Runtimes[i]
	}
	return Runtime{}
}

// Union returns what a column of all rows has, each text once, in the order of the rows. Empty texts are left out.
func Union(column func(Runtime) []string) (all []string) {
	for _, r := range Runtimes {
		for _, text := range column(r) {
			if text != "" && !slices.Contains(all, text) {
				all = append(all, text)
			}
		}
	}
	return all
}

// Weights returns the values of cpu.weight that CPU shares may become in cgroup v2.
func Weights(shares int64) []string {
	shares = min(max(shares, minShares), maxShares)
	return Union(func(r Runtime) (all []string) {
		for _, weight := range r.Weights {
			all = append(all, strconv.FormatUint(weight(uint64(shares)), 10))
		}
		return all
	})
}

const minShares, maxShares = 2, 262144 // those that the kernel takes

// Weight returns the cpu.weight of cgroup v2 for CPU shares, of which 2 to 262144 are valid: the function of runc since
// 1.3.2. It maps the kernel's defaults, 1024 shares and a weight of 100, to each other.
func Weight(shares uint64) uint64 {
	switch {
	case shares <= minShares:
		return 1
	case shares >= maxShares:
		return 10_000
	}
	l := math.Log2(float64(shares))
	return uint64(math.Ceil(math.Pow(10, (l*l+125*l)/612-7.0/34)))
}

// linearWeight is the function before.
func linearWeight(shares uint64) uint64 { return 1 + (shares-minShares)*9999/(maxShares-minShares) }
