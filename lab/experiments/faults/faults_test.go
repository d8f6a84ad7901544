package faults

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/certify"
	"github.com/octavo-fp8/octavo/lab"
	"github.com/octavo-fp8/octavo/lab/labtest"
	"github.com/octavo-fp8/octavo/lab/report"
	"github.com/octavo-fp8/octavo/parallel/twin"
)

func TestFaultsLab(t *testing.T) {
	labtest.Slow(t)
	r := labtest.Run(t, Experiment, labtest.Short())
	labtest.Judged(t, r, 1, 9)
	teams := labtest.Table(t, r, "teams").Rows
	require.Len(t, teams, len(teamKinds))
	along := map[any]float64{}
	for i, row := range teams {
		require.Equal(t, i == 0, row[3] == 0.0, "%v is not all ranks", row[0])
		along[row[0]] = row[7].(float64)
	}
	require.InDelta(t, 1, along[whole], 0)
	require.InDelta(t, 7./8*along[without], along[byAll], 1e-6, "the same ranks, divided by all")
	require.Equal(t, along[without], along[sometimes], "the first step lacks the same rank")
	for _, row := range labtest.Table(t, r, "faults").Rows {
		require.Equal(t, row[1], row[2], "%v", row)
	}
}

// TestAbsent: as many ranks are left out as is said, each equally often, or always the same.
func TestAbsent(t *testing.T) {
	for _, k := range teamKinds {
		var counts [teamRanks]int
		const steps = 4000
		for step := range steps {
			ranks := k.absent(7, step)
			if k.every == 0 || step%k.every != 0 {
				require.Empty(t, ranks)
				continue
			}
			require.Len(t, ranks, k.lost)
			for i, r := range ranks {
				require.NotContains(t, ranks[:i], r)
				counts[r]++
			}
		}
		if k.same {
			require.Equal(t, steps, slices.Max(counts[:]))
			continue
		}
		want := k.share() * steps
		for _, n := range counts {
			require.InDelta(t, want, n, 6*math.Sqrt(want)+1, "%s: %v", k.name, counts)
		}
	}
	require.NotEqual(t, teamKinds[3].absent(1, 0), teamKinds[3].absent(3, 0), "of other seeds")
}

func TestAlong(t *testing.T) {
	require.Equal(t, 0.5, along([]float32{1, 1, 7}, []float32{2, 2, 0}))
}

// madeUp are results of as many seeds as were declared: as is hoped, or the opposite.
func madeUp(good bool) *study {
	s := &study{scope: scope{seeds: 12, steps: 3}}
	for seed := range s.seeds {
		few := 1e-4 * math.Sin(float64(7*seed)) // seeds differ
		of := &sample{scope: s.scope}
		for i, k := range teamKinds {
			own := few * math.Cos(float64(3*seed+i)) // teams differ, too
			t := &team{kind: k, judged: []float64{2 * (1 + own)}, along: 1 + own, norms: []float64{1, 1, 1}}
			long := map[string]float64{withoutHalf: 1.2, oneLeft: 1.5}[k.name]
			if !good {
				long = map[string]float64{sometimes: 1.5, without: 2, withoutSame: 1, byAll: 1}[k.name]
			}
			if long != 0 {
				t.judged[0] *= long
			}
			if good == (k.name == byAll) {
				t.along *= 0.8
			}
			of.teams = append(of.teams, t)
		}
		found := certify.Found{Fault: twin.Fault{Step: 2}}
		found.Twin = &twin.Difference{Step: 2}
		if !good {
			found.Twin.Step = 3
		}
		of.found = &certify.FaultReport{Rows: []certify.Found{found}}
		s.samples = append(s.samples, of)
	}
	return s
}

// TestCanFail: goals are met, missed, caught and not caught as figures have it, and sentences
// say so.
func TestCanFail(t *testing.T) {
	for _, good := range []bool{true, false} {
		r := madeUp(good).report()
		for _, g := range r.Goals {
			want := report.Missed
			switch {
			case g.Control && good:
				want = report.Caught
			case g.Control:
				want = report.NotCaught
			case good:
				want = report.Met
			}
			require.Equal(t, want, g.Outcome, "%s: %s", g.Name, g.Got)
			require.Contains(t, labtest.Sentences(r), g.Name+" is "+strings.ToLower(want.String()))
		}
	}
	clean := madeUp(true)
	clean.samples[3].found.Clean.Sums = &certify.SumsFound{}
	require.EqualValues(t, 1, clean.notFound(), "something is found where there is no fault")
}

// TestDeclaredSample: a full run has a value for each seed that was declared.
func TestDeclaredSample(t *testing.T) {
	seeds := newStudy(labtest.Rhymes(lab.Full)).seeds
	for _, g := range append(slices.Clone(declared().Hypotheses), declared().Controls...) {
		if g.Test != "exact" {
			require.Equal(t, seeds, g.Sample, g.Name)
		}
	}
}
