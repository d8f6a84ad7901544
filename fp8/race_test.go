//go:build race

package fp8_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
)

// TestRace runs each conversion in a process of its own while another goroutine
// touches what it reads or writes, and wants the race to be found.
func TestRace(t *testing.T) {
	const n = 64
	values, codes, amax := make([]float32, n), make([]byte, n), make([]float32, n)
	halves := make([]fp8.BFloat16, n)
	for name, c := range map[string]struct{ convert, touch func() }{
		"encode reads":  {func() { fp8.Encode(make([]byte, n), values, fp8.E4M3, fp8.Policy{}, nil) }, func() { values[n/2] = 1 }},
		"encode writes": {func() { fp8.Encode(codes, values, fp8.E4M3, fp8.Policy{}, nil) }, func() { codes[n/2] = 1 }},
		"decode reads":  {func() { fp8.Decode(make([]float32, n), codes, fp8.E4M3) }, func() { codes[n/2] = 1 }},
		"decode writes": {func() { fp8.Decode(values, codes, fp8.E4M3) }, func() { values[n/2] = 1 }},
		"amax reads":    {func() { fp8.Amax(values) }, func() { values[n/2] = 1 }},
		"blocks read":   {func() { fp8.AmaxBlocks(amax, values, 16) }, func() { values[n/2] = 1 }},
		"blocks write":  {func() { fp8.AmaxBlocks(amax, values, 16) }, func() { amax[1] = 1 }},
		"columns write": {func() { fp8.AmaxBlocks(amax, values, 1) }, func() { amax[n/2] = 1 }},
		"widening":      {func() { fp8.Amax(halves) }, func() { halves[n/2] = 1 }},
		"narrowing":     {func() { fp8.Decode(halves, codes, fp8.E4M3) }, func() { halves[n/2] = 1 }},
	} {
		t.Run(name, func(t *testing.T) {
			if os.Getenv("OCTAVO_RACE") != "" {
				done := make(chan bool)
				go func() { c.touch(); close(done) }()
				c.convert()
				<-done
				return
			}
			again := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
			again.Env = append(os.Environ(), "OCTAVO_RACE=1")
			out, _ := again.CombinedOutput()
			require.Contains(t, string(out), "DATA RACE")
		})
	}
}
