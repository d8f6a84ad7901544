//go:build linux && amd64 && !purego

package gemm_test

import (
	"testing"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/amxemu"
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels/kernelstest"
)

// TestAMX runs the tests of levels for level AMX: all of them with tiles even where
// these do not pay, and some as products come.
func TestAMX(t *testing.T) {
	amxemu.Test(t, func(t *testing.T) {
		before := levels
		levels = []cpu.Level{cpu.AMX}
		defer func() { levels = before }()
		t.Run("Golden", TestGolden)
		t.Run("Large", TestLarge)
		t.Run("always", func(t *testing.T) {
			defer gemm.AMXAlways()()
			for name, test := range levelTests {
				t.Run(name, test)
			}
		})
	}, "tdpbf16ps")
	kernelstest.Tested(t, "gemm.Multiply", cpu.AMX)
}
