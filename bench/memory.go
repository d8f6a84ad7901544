package bench

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
)

// ErrMemory is behind the error of [PeerSuite.Run] where a product's operands do not fit.
var ErrMemory = errors.New("not enough memory")

// peerBytes is about how much octavo and the programs of the peers hold at once for a
// product: of octavo codes, packed ones, C, the float32s that codes are made from and what
// is read to know how fast memory is; of OpenBLAS float32 in one program and bfloat16 in
// two; of oneDNN A, B, reordered B and C in each of its three types, each of them twice.
// Limits that a container has of its own are not known.
func (s Shape) peerBytes() float64 {
	m, n, k, experts := float64(s.M), float64(s.N), float64(s.K), float64(s.Experts)
	own := m*k + 2*experts*n*k + 4*m*n + 4*max(m, n)*k + float64(s.Bytes())
	if experts > 1 {
		return own + m*k + 2*n*k + 4*m*n // of one product
	}
	return own + (4+2*2+7)*(m*k+n*k) + 7*n*k + (3+6)*4*m*n
}

// enoughMemory refuses shapes that take more than is free, where that is known.
func enoughMemory(shapes []Shape) error {
	free := freeMemory()
	for _, s := range shapes {
		if need := s.peerBytes(); free > 0 && need > free {
			return fmt.Errorf("%w: %v takes about %.3g GiB with all peers, and %.3g GiB are free", ErrMemory, s, need/(1<<30), free/(1<<30))
		}
	}
	return nil
}

var memAvailable = regexp.MustCompile(`(?m)^MemAvailable:\s+(\d+) kB$`)

// freeMemory returns how many bytes can be had without swapping, or 0 if nobody says.
func freeMemory() float64 {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	return parseMemory(text)
}

func parseMemory(text []byte) float64 {
	m := memAvailable.FindSubmatch(text)
	if m == nil {
		return 0
	}
	kilobytes, err := strconv.ParseFloat(string(m[1]), 64)
	if err != nil {
		return 0
	}
	return 1024 * kilobytes
}
