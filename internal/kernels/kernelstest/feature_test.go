package kernelstest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
)

// TestFeatures has an operation with and without a feature at one level.
func TestFeatures(t *testing.T) {
	o := kernels.New("kernelstest.Dot", kernels.At(cpu.Generic, "plain"), kernels.At(cpu.Generic, "vnni").With(cpu.VNNI), kernels.At(cpu.Generic, "dotprod").With(cpu.DotProd))
	var want, got []string
	for _, v := range []struct {
		name    string
		feature cpu.Feature
	}{{"plain", cpu.NoFeature}, {"vnni", cpu.VNNI}, {"dotprod", cpu.DotProd}} {
		if cpu.Has(v.feature) {
			want = append(want, v.name)
		}
	}
	Compare(t, o.Name(), func(t *testing.T, l cpu.Level) {
		f, _ := o.For(l)
		got = append(got, f)
		require.Equal(t, 1, len(serving(kernels.Entries(o.Name()), l)))
	})
	require.Equal(t, want, got)
	require.Empty(t, untested(kernels.Entries(o.Name()), []cpu.Level{cpu.Generic}))

	// What is compared is not what serves if a better one is there.
	other := kernels.New("kernelstest.Other", kernels.At(cpu.Generic, "plain"), kernels.At(cpu.Generic, "vnni").With(cpu.VNNI))
	Tested(t, other.Name(), cpu.Generic)
	require.Equal(t, cpu.Has(cpu.VNNI), len(untested(kernels.Entries(other.Name()), []cpu.Level{cpu.Generic})) == 1)
}
