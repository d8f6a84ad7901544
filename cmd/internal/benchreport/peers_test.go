package benchreport

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/bench"
	"github.com/octavo-fp8/octavo/cmd/internal/machine"
)

// peersExample is a run that was not.
func peersExample() PeerResult {
	ratio := func(level string, packed bool, to string, median, half float64, pairs int, best float64) bench.RatioTo {
		return bench.RatioTo{Level: level, Packed: packed, To: to, Ratio: bench.Ratio{Median: median, Low: median - half, High: median + half, Pairs: pairs}, Best: best}
	}
	return PeerResult{
		Machine: machine.Info{
			Build: machine.Build{Version: "v9"}, Go: "go1", OS: "linux", Arch: "amd64", GOMAXPROCS: 2, Level: "avx512",
			Features: []string{"avx2", "fma"}, Model: "A processor", CachesFrom: "cpuid",
			Caches: []machine.Cache{{Level: 1, Bytes: 48 << 10}, {Level: 2, Bytes: 3 << 19, SharedBy: 2}},
		},
		Date:    "2026-11-22",
		Command: "octavo bench --peers",
		PeerReport: &bench.PeerReport{
			Cases:    3,
			Program:  bench.PeerAbout{Protocol: 1, BLAS: "OpenBLAS 0", Core: "Haswell", OneDNN: "2.6.3", Instructions: "AVX-512"},
			Cores:    []bench.Core{{Got: "Haswell"}, {Asked: "Haswell", Got: "Haswell"}, {Asked: "SkylakeX", Got: "SkylakeX"}, {Asked: "SapphireRapids", Got: "Cooperlake"}, {Asked: "New"}},
			Notes:    []string{"onednn-fp8: not before version 3.4"},
			Failures: []string{"onednn-f32, 9x9x9 by 1: out of memory"},
			Spread:   0.03, Limit: 5,
			Done: []bench.Comparison{
				{
					What: "decode", Unit: "GB/s", Workers: 1, Rounds: 9, Settled: true,
					Rates:  []bench.Rate{{By: bench.Octavo, Level: "avx2", Best: 20, Median: 19}, {By: "memcpy", Best: 10, Median: 9}},
					Ratios: []bench.RatioTo{ratio("avx2", false, "memcpy", 2, 0.01, 9, 2)},
				},
				{
					What: "8x8x8", Unit: "GFLOP/s", Workers: 1, Rounds: 7,
					Rates: []bench.Rate{
						{By: bench.Octavo, Level: "avx2", Best: 100, Median: 90}, {By: bench.Octavo, Level: "avx2", Packed: true, Best: 110, Median: 99},
						{By: bench.Octavo, Level: "avx512", Best: 200, Median: 180},
						{By: bench.Roof, Level: "avx2", Best: 125, Median: 120}, {By: bench.Roof, Level: "avx512", Best: 250, Median: 240},
						{By: "openblas-sgemm", Core: "SkylakeX", Best: 220, Median: 200},
						{By: "onednn-f32", Best: 150, Median: 140}, {By: "onednn-f32-reordered", Format: "BA16a64b", Best: 210, Median: 200},
					},
					Ratios: []bench.RatioTo{
						ratio("avx2", false, bench.Roof, 0.75, 0.05, 7, 0.8), ratio("avx2", false, "openblas-sgemm", 0.45, 0.02, 7, 0.46),
						ratio("avx2", false, "onednn-f32", 0.64, 0.02, 7, 0.67), ratio("avx2", false, "onednn-f32-reordered", 0.46, 0.03, 7, 0.48),
						ratio("avx2", true, "openblas-sgemm", 0.5, 0.02, 7, 0.53),
						ratio("avx512", false, "openblas-sgemm", 0.9, 0.25, 5, 0.91),
					},
				},
			},
		},
	}
}

func TestPeersText(t *testing.T) {
	r := peersExample()
	r.Compare("old.json", RatioTable{Machine: machine.Info{Model: "Another"}, BLAS: "OpenBLAS 1", Ratios: []bench.RatioEntry{
		{What: "8x8x8", Workers: 1, RatioTo: bench.RatioTo{Level: "avx2", Packed: true, To: "openblas-sgemm", Ratio: bench.Ratio{Median: 0.6, Low: 0.59, High: 0.61, Pairs: 20}, Best: 0.6}},
		{What: "decode", Workers: 1, RatioTo: bench.RatioTo{Level: "avx2", To: "memcpy", Ratio: bench.Ratio{Median: 1.5, Low: 1, High: 1.6, Pairs: 20}, Best: 1.5}},
		{What: "8x8x8", Workers: 1, RatioTo: bench.RatioTo{Level: "avx2", To: bench.Roof, Ratio: bench.Ratio{Median: 0.8, Low: 0.7, High: 0.81, Pairs: 20}, Best: 0.8}},
	}})
	var out strings.Builder
	require.NoError(t, r.WriteText(&out, "dir"))
	require.Equal(t, `  octavo v9, go1, linux/amd64, GOMAXPROCS 2, level avx512
  Processor: A processor; L1 48 KiB, L2 1.5 MiB for 2; avx2 fma
  Peers: OpenBLAS 0, which takes this processor for Haswell; cores tried:
  Haswell, SkylakeX, SapphireRapids (gives Cooperlake), New (does not run)
  Peers: oneDNN 2.6.3 with AVX-512

Products of octavo are E4M3, scales 1x128 by 128x128; peers' are of the type
that their name says, without scales. Rates are the best, GFLOP/s or, of
conversions, GB/s of float32. A ratio is octavo's rate divided by the other's in
the same round: the median of all rounds, and half of its 95% interval after ±,
or ? of fewer than six rounds; then the ratio of the best rates, with ! where it
is outside of the interval, so that one of the two misleads. In each round the
roof is the best of three short spins, a rate the mean of a turn. OpenBLAS is
its sgemm or sgemv; f32, bf16 and fp8 are oneDNN's, with weights as they are or
reordered, whichever was faster.

avx2, 1 worker, GB/s  octavo          memcpy
decode                  20.0  2.00±0.01 2.00

avx2, 1 worker, GFLOP/s  octavo            roof         OpenBLAS             f32
8x8x8                       100  0.75±0.05 0.80  0.45±0.02 0.46   0.46±0.03 0.48
8x8x8, packed               110                  0.50±0.02 0.53!

avx512, 1 worker, GFLOP/s  octavo     OpenBLAS
8x8x8                         200  0.90±? 0.91

  Fastest core: openblas-sgemm SkylakeX (8x8x8 by 1).

  Formats of reordered weights: onednn-f32-reordered BA16a64b (8x8x8 by 1).

  Not to be had: onednn-fp8: not before version 3.4.

  Failed, and left out: onednn-f32, 9x9x9 by 1: out of memory.

  1 of 2 comparisons ended after 5 s with a ratio not known to ±3%.

  Against old.json: of 3 ratios, 1 became worse and 1 better: their intervals
  are more than 3% apart. Measure what is worse once more, with --shapes and a
  longer --limit, before believing it. It is of another processor: Another. It
  is of other peers: OpenBLAS 1; oneDNN none.

  Worse: 8x8x8, packed, 1 worker, avx2, to openblas-sgemm: 0.5 (0.48 to 0.52),
  was 0.6 (0.59 to 0.61).

  Better: decode, 1 worker, avx2, to memcpy: 2 (1.99 to 2.01), was 1.5 (1 to
  1.6).

Tables and how to repeat it: dir/index.html
`, out.String())
}

func TestPeersPage(t *testing.T) {
	var out strings.Builder
	require.NoError(t, peersExample().writePage(&out))
	for _, want := range []string{"Stopped after 2 of 3 comparisons", "A processor", "onednn-f32-reordered", "0.75±0.05", "of best", "<code>octavo bench --peers</code>", "0.90±?"} {
		require.Contains(t, out.String(), want)
	}
	require.NotContains(t, out.String(), "Against an earlier run")

	names := regexp.MustCompile(`aria-label="[^"]*"`).FindAllString(out.String(), -1)
	require.Len(t, names, 3)
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(names))), 3, "regions of one name: %v", names)
}

// TestRatioTable reads back what was written, a ratio in each line.
func TestRatioTable(t *testing.T) {
	r := peersExample()
	r.Done[0].Ratios[0].Median = 2.00004321
	var out bytes.Buffer
	table := r.ratioTable()
	require.NoError(t, table.write(&out))
	require.Contains(t, out.String(), "\n    "+`{"what":"decode","workers":1,"level":"avx2","to":"memcpy","median":2,"low":1.99,"high":2.01,"pairs":9,"best":2},`+"\n")
	got, err := ReadRatios(out.Bytes())
	require.NoError(t, err)
	require.Equal(t, table, got)
	require.Equal(t, 2.00004321, r.Done[0].Ratios[0].Median, "the run itself is as it was")
	r.Compare("f", got)
	require.Equal(t, 6, r.Against.Both, "all but the one of five pairs")
	require.Empty(t, r.Against.Worse)

	for says, text := range map[string]string{
		"it is no table of ratios":             "[]",
		"of version 2: this octavo reads vers": `{"version":2}`,
		"it has no ratios":                     `{"version":1}`,
		"ratio 0, of \"a\" to \"b\", makes no": `{"version":1,"ratios":[{"what":"a","to":"b","median":1,"low":2,"high":3,"pairs":9}]}`,
		"makes no sense":                       `{"version":1,"ratios":[{"what":"a","to":"b","median":0,"low":0,"high":0,"pairs":9}]}`,
	} {
		_, err := ReadRatios([]byte(text))
		require.ErrorContains(t, err, says)
	}
	require.True(t, json.Valid(out.Bytes()))
}

// TestCommittedTables reads the tables of bench/regression.
func TestCommittedTables(t *testing.T) {
	files, err := filepath.Glob("../../../bench/regression/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		table, err := ReadRatios(text)
		require.NoError(t, err, file)
		require.NotEmpty(t, table.Note, file)
		require.NotEmpty(t, table.Machine.Model, file)
	}
}
