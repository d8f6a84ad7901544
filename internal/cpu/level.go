package cpu

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/cpu"

	"github.com/octavo-fp8/octavo/internal/sentinel"
)

// Level is a set of instructions that kernels are written for. Every level gives
// the bits of [Generic].
type Level int32

// The levels, each architecture's in rising order. AVX512BF16 and AMX have instructions for
// matrix products only; everything else is that of AVX512 there, so kernels of vectors
// ask for a level of at least AVX512. A processor with AMX may lack AVX512BF16, and
// neither is always faster: see package gemm.
const (
	Generic    Level = iota // plain Go
	NEON                    // arm64's Advanced SIMD
	AVX2                    // with FMA and F16C
	AVX512                  // F, BW, DQ and VL
	AVX512BF16              // AVX512 with dot products of bfloat16, and VBMI
	AMX                     // AVX512 with tiles of bfloat16

	NumLevels // how many there are
)

// Vectors is the level of vectors which serves where AMX's tiles, or dot products of bfloat16, do
// not pay or are refused.
const Vectors = AVX512

var levelNames = [...]string{Generic: "generic", NEON: "neon", AVX2: "avx2", AVX512: "avx512", AVX512BF16: "avx512bf16", AMX: "amx"}

// String returns the level's name, as in the environment variable OCTAVO_LEVEL.
func (l Level) String() string {
	if l < 0 || int(l) >= len(levelNames) {
		return fmt.Sprintf("Level(%d)", int32(l))
	}
	return levelNames[l]
}

// ParseLevel returns the level of the given name.
func ParseLevel(name string) (Level, error) {
	for l, n := range levelNames {
		if n == name {
			return Level(l), nil
		}
	}
	return Generic, sentinel.Errorf(ErrLevel, "unknown level %q: want one of %s", name, strings.Join(levelNames[:], ", "))
}

// Levels returns the levels that this build and processor have, in rising order.
// Each needs all of its parents, since a switch that turns one extension off
// leaves those on that depend on it. Linux may still refuse AMX: see [Product].
func Levels() []Level {
	levels := []Level{Generic}
	if pure {
		return levels
	}
	switch x86 := &cpu.X86; runtime.GOARCH {
	case "arm64":
		levels = append(levels, NEON)
	case "amd64":
		if !(x86.HasAVX && x86.HasAVX2 && x86.HasFMA && hasF16C()) {
			break
		}
		levels = append(levels, AVX2)
		if x86.HasAVX512F && x86.HasAVX512BW && x86.HasAVX512DQ && x86.HasAVX512VL {
			levels = append(levels, AVX512)
			if x86.HasAVX512BF16 && x86.HasAVX512VBMI {
				levels = append(levels, AVX512BF16)
			}
			if hasAMX() {
				levels = append(levels, AMX)
			}
		}
	}
	return levels
}

var (
	current    atomic.Int32 // the level, and named if somebody chose it
	initialErr error        // what was wrong with OCTAVO_LEVEL
)

const named = 1 << 16

func init() {
	name := os.Getenv("OCTAVO_LEVEL")
	l, err := initial(name)
	switch {
	case err != nil:
		initialErr = fmt.Errorf("OCTAVO_LEVEL: %w", err)
	case name != "":
		l |= named
	}
	current.Store(int32(l))
}

// ErrLevel is what errors about levels are, for [errors.Is].
var ErrLevel = errors.New("octavo: no such level here")

// Check returns an error, which is [ErrLevel], if OCTAVO_LEVEL named a level that
// this machine does not have when the program started.
func Check() error { return initialErr }

// initial returns the highest level, or the named one if there is a name. With an
// error it returns the highest too: results are the same.
func initial(name string) (Level, error) {
	levels := Levels()
	highest := levels[len(levels)-1]
	if name == "" {
		return highest, nil
	}
	l, err := ParseLevel(name)
	if err == nil {
		err = l.check()
	}
	if err != nil {
		return highest, err
	}
	return l, nil
}

func (l Level) check() error {
	for _, have := range Levels() {
		if l == have {
			return nil
		}
	}
	return sentinel.Errorf(ErrLevel, "this machine has no level %s: it has %v", l, Levels())
}

// Current returns the level in use: the highest, unless the environment variable
// OCTAVO_LEVEL named another when the program started; see [Check]. Matrix products
// use [Product].
func Current() Level { return Level(current.Load()) &^ named }

// Named reports whether the level in use was named, by OCTAVO_LEVEL or [Force]: it is then used
// where another would be faster, too.
func Named() bool { return current.Load()&named != 0 }

// Force makes l the level in use and returns what goes back to the one before. It
// is for tests and benchmarks, and an error if the machine has no such level.
func Force(l Level) (restore func(), err error) {
	if err := l.check(); err != nil {
		return nil, err
	}
	before := current.Swap(int32(l | named))
	return func() { current.Store(before) }, nil
}
