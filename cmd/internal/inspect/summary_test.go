package inspect

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/filetest"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/safetensors"
)

// TestSummary has, for each sentence of the summary, an input of which it is true and one for
// which it must not be printed.
func TestSummary(t *testing.T) {
	plain := filetest.F32("plain", []int{2, 2}, 1, 2, 3, 4)
	bad := filetest.F32("bad", []int{2}, 1, nanValue)
	codes := filetest.Raw("w", safetensors.F8E4M3, []int{2, 128}, make([]byte, 256)...)
	lone := filetest.Raw("lone", safetensors.F8E4M3, []int{4}, make([]byte, 4)...)
	scales := func(values ...float32) safetensors.Tensor {
		return filetest.F32("w_scale_inv", []int{2, 1}, values...)
	}
	packed := filetest.Raw("q.qweight", safetensors.I32, []int{2, 2}, make([]byte, 16)...)
	complex64 := filetest.Raw("z", safetensors.C64, []int{1}, make([]byte, 8)...)
	ids := filetest.Raw("ids", safetensors.I64, []int{1}, make([]byte, 8)...)
	const (
		none     = "No value is NaN or infinite."
		noneRead = "could be read is NaN or infinite."
		alone    = "codes alone"
	)
	for _, c := range []struct {
		name      string
		tensors   []safetensors.Tensor
		said, not []string
	}{
		{"all sound", []safetensors.Tensor{plain, codes, scales(1, 2)}, []string{none, "Tensors of codes: 1 with scales, 0 without."}, []string{"Not judged", "^ not judged", alone, "No floating", "Scales that"}},
		{"a NaN", []safetensors.Tensor{plain, bad}, []string{"NaN or infinite: 1 value in 1 tensor."}, []string{none, noneRead}},
		{"codes without scales", []safetensors.Tensor{plain, lone}, []string{"Tensors of codes: 0 with scales, 1 without. Values of 1 are those of codes alone.", none}, nil},
		{"codes of no known block", []safetensors.Tensor{codes, filetest.F32("w_scale_inv", []int{2, 3}, 1, 1, 1, 1, 1, 1)},
			[]string{"Tensors of codes: 1 with scales, 0 without. Values of 1 are those of codes alone."}, nil},
		{"a scale that is none", []safetensors.Tensor{plain, codes, scales(1, -1)},
			[]string{"Scales that are NaN or no scales: of 1 tensor.", "Not judged: 1 tensor as said below.", "No value of the 2 tensors that " + noneRead}, []string{none, alone}},
		{"a method that is not read", []safetensors.Tensor{plain, packed}, []string{"Not judged: 1 tensor of GPTQ or AWQ.", "No value of the 1 tensor that " + noneRead}, []string{none}},
		{"complex numbers", []safetensors.Tensor{complex64}, []string{"Not judged: 1 tensor as said below.", "No floating-point value was read."}, []string{none, noneRead}},
		{"integers alone", []safetensors.Tensor{ids}, []string{"No floating-point value was read."}, []string{none, noneRead, "Not judged"}},
	} {
		path := filetest.Write(t, nil, c.tensors...)
		r := run(t, Job{Inputs: inputs(t, path)})
		for _, said := range []string{textOf(t, r), pageText(t, r)} {
			for _, want := range c.said {
				require.True(t, strings.Contains(said, want), "%s: %q is not said", c.name, want)
			}
			for _, not := range c.not {
				require.False(t, strings.Contains(said, not), "%s: %q is said", c.name, not)
			}
		}
	}
}

var nanValue = func() float32 { var zero float32; return zero / zero }()

// textOf is the text of a report in one line.
func textOf(t *testing.T, r *Report) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, r.WriteText(&b, View{Sort: ByRisk}))
	return strings.Join(strings.Fields(b.String()), " ")
}

func pageText(t *testing.T, r *Report) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, r.WritePage(&b, View{Sort: ByRisk}, "octavo inspect", "here"))
	return b.String()
}

// TestSummaryOfSome interrupts: what was not read is counted, and no sentence is of it.
func TestSummaryOfSome(t *testing.T) {
	path := filetest.Write(t, nil,
		filetest.F32("a", []int{2, 2}, 1, 2, 3, 4), filetest.F32("b", []int{2, 2}, 1, 2, 3, 4), filetest.F32("c", []int{2}, 1, nanValue))
	in := inputs(t, path)
	seen := map[int]bool{}
	for at := int64(1); len(seen) < 3; at++ {
		ctx, cancel := context.WithCancel(t.Context())
		r, err := Job{Inputs: in, workers: 1}.Run(countdown{ctx, cancel, new(atomic.Int64), at})
		cancel()
		require.ErrorIs(t, err, context.Canceled)
		done := len(r.Tensors)
		if seen[done] {
			continue
		}
		seen[done] = true
		want := "No value of the " + textout.Count(done, "tensor") + " that could be read is NaN or infinite."
		if done == 0 {
			want = "No floating-point value was read."
		}
		for _, said := range []string{textOf(t, r), pageText(t, r)} {
			require.False(t, strings.Contains(said, "No value is NaN or infinite."))
			require.True(t, strings.Contains(said, fmt.Sprintf("Stopped: %d of 3 tensors were inspected", done)))
			require.True(t, strings.Contains(said, want), want)
		}
	}
}

// TestProblemsAreSaid has an index that names a file that is not there.
func TestProblemsAreSaid(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, safetensors.WriteFile(filepath.Join(dir, "a.safetensors"), []safetensors.Tensor{filetest.F32("a", []int{1, 1}, 1)}, nil))
	require.NotContains(t, textOf(t, run(t, Job{Inputs: inputs(t, dir)})), "the index names it")
	index := `{"weight_map":{"a":"a.safetensors","b":"b.safetensors"}}`
	require.NoError(t, os.WriteFile(filepath.Join(dir, "model.safetensors.index.json"), []byte(index), 0o666))
	require.Contains(t, textOf(t, run(t, Job{Inputs: inputs(t, dir)})), `^ b.safetensors: the index names it, for tensor "b":`)
}
