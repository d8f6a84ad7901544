// Command levelcheck reads the log that tests write where OCTAVO_KERNEL_LOG is set
// (see package kernelstest) and fails unless every kernel in the registry was compared
// at every level and with every feature that this machine has, and packages fp8 and gemm were at each of
// these levels. With AVX-512 and Linux, level AMX must be among them, under the
// emulator of package amxemu where the processor has none.
//
//	OCTAVO_KERNEL_LOG=$PWD/kernels.out go test ./... && go run ./internal/kernels/levelcheck kernels.out
package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"

	_ "github.com/octavo-fp8/octavo/gemm" // registers all kernels, with the next
	_ "github.com/octavo-fp8/octavo/internal/aligned"
	_ "github.com/octavo-fp8/octavo/internal/canonical"
	_ "github.com/octavo-fp8/octavo/internal/dots"
	_ "github.com/octavo-fp8/octavo/internal/elementary"
	_ "github.com/octavo-fp8/octavo/internal/softmax"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: levelcheck log")
		os.Exit(2)
	}
	log, err := os.ReadFile(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "levelcheck:", err)
		os.Exit(1)
	}
	levels := required()
	fmt.Printf("levels that must have run: %v\n", levels)
	missing := missing(string(log), levels, kernels.Entries(""), func(f cpu.Feature) bool {
		return cpu.Has(f) || f == cpu.AMXInt8 // as the emulator has it
	})
	for _, line := range missing {
		fmt.Fprintln(os.Stderr, "levelcheck: no test was run for", line)
	}
	if len(missing) > 0 {
		os.Exit(1)
	}
	for _, l := range levels {
		n := 0
		for _, e := range kernels.Entries("") {
			if e.Level == l {
				n++
			}
		}
		fmt.Printf("%v: %d implementations compared\n", l, n)
	}
}

// required returns the levels that tests must have run at.
func required() []cpu.Level {
	levels := cpu.Levels()
	if runtime.GOOS == "linux" && slices.Contains(levels, cpu.Vectors) && !slices.Contains(levels, cpu.AMX) {
		levels = append(levels, cpu.AMX)
	}
	return levels
}

// missing lists what should be in the log and is not.
func missing(log string, levels []cpu.Level, entries []kernels.Entry, has func(cpu.Feature) bool) (list []string) {
	compared, packages := map[string]bool{}, map[string]bool{}
	for line := range strings.Lines(log) {
		if f := strings.Fields(line); len(f) == 3 {
			compared[f[1]+" "+f[2]] = true
			packages[f[0]+" "+f[2]] = true
		}
	}
	for _, e := range entries {
		if slices.Contains(levels, e.Level) && has(e.Feature) && !compared[e.Operation+" "+e.Place()] {
			list = append(list, e.String())
		}
	}
	for _, l := range levels {
		if l != cpu.Generic && l != cpu.AVX512BF16 && l != cpu.AMX && !packages[fmt.Sprint("fp8 ", l)] { // at the last two it has the kernels of AVX512
			list = append(list, fmt.Sprintf("package fp8 at level %v", l))
		}
		if !packages[fmt.Sprint("gemm ", l)] {
			list = append(list, fmt.Sprintf("package gemm at level %v", l))
		}
	}
	return list
}
