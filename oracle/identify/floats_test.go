package identify

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// floatModels recovers every model of BF16, FP16 and TF32 from its own answers, alone and
// promoted, for TestModels.
func floatModels(t *testing.T, table *modelTable) {
	t.Helper()
	for _, m := range oracle.Models() {
		if m.Float == oracle.NoFloat {
			continue
		}
		p := setup(t, Setup{Float: m.Float, K: 128})
		for _, promote := range []int{0, 64} {
			k := oracle.Kernel{Model: m, Promote: promote}
			r := identify(t, p, newCandidate(k, false), safetensors.F32)
			require.Len(t, r.Kernels, 1, "%v, %d", m, promote)
			table.add(fmt.Sprintf("%v, K = 128", m.Float), kernelName(k, false), r)
			same := *r.Kernels[0].Kernel
			require.Contains(t, r.Kernels[0].Name, m.Name)
			same.Model.Name, same.Model.Evidence = m.Name, m.Evidence
			same.Model.K = m.K // a chain of steps, however they are called
			require.Equal(t, k, same)
			require.True(t, r.Described)
			require.Equal(t, []int{m.L, m.F, m.Keep, promote}, []int{r.Measured.Fused, r.Measured.Aligned, r.Measured.Result, r.Measured.Chain})
			require.Equal(t, towardZero, r.Measured.AlignedRounding)
			require.True(t, r.Measured.Carried)
			for _, n := range r.Neighbours {
				require.True(t, n.Differ > 0 || n.Change == "fraction bits of a result = 22" && m.F < 22, "%v: %s", m, n.Change)
			}
		}
	}
}

// TestFloatControls has answers of what is no tensor core, and of other hardware.
func TestFloatControls(t *testing.T) {
	s := Setup{Float: oracle.BF16, K: 64}
	p := setup(t, s)
	for _, c := range s.others() {
		require.Equal(t, []string{c.Name}, names(identify(t, p, c, safetensors.F32)), c.Name)
	}
	k := oracle.Kernel{Model: oracle.Model{Float: oracle.BF16, L: 32, K: 32, F: 28, Keep: 23}}
	r := identify(t, p, newCandidate(k, false), safetensors.F32)
	require.Len(t, r.Kernels, 1)
	require.True(t, r.Kernels[0].Measured)
	require.Equal(t, []int{32, 28}, []int{r.Measured.Fused, r.Measured.Aligned})
}

// TestMixed has operands of two formats.
func TestMixed(t *testing.T) {
	e5m2, e4m3 := fp8.E5M2, fp8.E4M3
	for _, s := range []Setup{{FormatB: &e5m2, K: 64}, {Format: fp8.E5M2, FormatB: &e4m3, K: 64}} {
		p := setup(t, s)
		require.Equal(t, *s.FormatB, p.Products[0].B.Format)
		require.NotEqual(t, *s.FormatB, p.Products[0].A.Format)
		r := identify(t, p, newCandidate(oracle.Kernel{Model: oracle.AdaMMA(), Scales: oracle.AThenB}, true), safetensors.F32)
		require.Equal(t, []string{"ada-mma, a-then-b"}, names(r))
		path := filepath.Join(t.TempDir(), "probes.safetensors")
		require.NoError(t, p.WriteFile(path))
		again, err := ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, p, again)
	}
	require.Contains(t, Setup{FormatB: &e5m2}.String(), "E4M3 by E5M2, K = 512")
}

// TestOld finds where the old C enters, for kernels of all kinds.
func TestOld(t *testing.T) {
	for _, s := range []Setup{{K: 96, Old: true}, {K: 64, Old: true, Float: oracle.BF16}} {
		p := setup(t, s)
		path := filepath.Join(t.TempDir(), "probes.safetensors")
		require.NoError(t, p.WriteFile(path))
		again, err := ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, p, again)
		models := []oracle.Model{oracle.AdaMMA(), oracle.HopperMMA()}
		if s.Float != oracle.NoFloat {
			models = []oracle.Model{oracle.Hopper(oracle.BF16)}
		}
		for _, m := range models {
			for _, promote := range []int{0, 32} {
				k := oracle.Kernel{Model: m, Promote: promote, Scales: oracle.AThenB}
				if s.Float != oracle.NoFloat {
					k.Scales = oracle.AnyOrder
				}
				plain := newCandidate(k, s.scaled())
				variants := plain.withOld(s)
				require.Len(t, variants, 2+min(promote, 1))
				for _, c := range variants {
					r := identify(t, p, c, safetensors.F32)
					require.NotEmpty(t, r.Kernels, c.Name)
					found := false
					for _, other := range r.Kernels {
						found = found || other.Old == c.Old && other.Kernel.Model.Name != ""
						// mma.sync on Hopper adds c to the sums of two steps, to nearest, as a sum of
						// instructions is; so one place is another's.
						require.True(t, other.Old == c.Old || m.Unit == oracle.Emulated, "%s and %s", c.Name, other.Name)
					}
					require.True(t, found, c.Name)
					switch {
					case m.Unit == oracle.Emulated:
					case c.Old == oldStep:
						require.Equal(t, oldStep, r.Measured.Old)
						require.Equal(t, m.F, r.Measured.OldBits)
						require.Equal(t, towardZero, r.Measured.OldRounding)
					default:
						require.Equal(t, c.Old, r.Measured.Old)
						require.Equal(t, 23, r.Measured.OldBits)
						require.Equal(t, nearestEven, r.Measured.OldRounding)
					}
				}
			}
		}
		for _, c := range s.others() {
			r := identify(t, p, c, safetensors.F32)
			require.Equal(t, []string{c.Name + "; the old C enters at the end"}, names(r))
		}
	}
}

// TestOldBlocks: where blocks have scales, the old C cannot be in a step.
func TestOldBlocks(t *testing.T) {
	s := Setup{K: 128, Old: true, BlockA: tensor.Block{Rows: 1, Cols: 64}}
	p := setup(t, s)
	c := newCandidate(oracle.Kernel{Model: oracle.AdaMMA(), Scales: oracle.AThenB}, true)
	require.Len(t, c.withOld(s), 1)
	r := identify(t, p, c, safetensors.BF16)
	require.NotEmpty(t, r.Kernels)
	require.Equal(t, oldEnd, r.Measured.Old)
}

// TestFloatSetups are refused where there are no probes.
func TestFloatSetups(t *testing.T) {
	bad := fp8.Format(99)
	for _, s := range []Setup{{Float: 9}, {NVFP4: true, Float: oracle.BF16}, {NVFP4: true, Old: true}, {FormatB: &bad}, {Float: oracle.FP16, K: 33}} {
		_, err := New(s)
		require.ErrorIs(t, err, ErrSetup, "%+v", s)
	}
}
