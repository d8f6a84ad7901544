package telemetry_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/telemetry"
	"github.com/octavo-fp8/octavo/tensor"
)

var (
	_ tensor.Reporter = (*telemetry.Recorder)(nil)
	_ telemetry.Sink  = (*telemetry.Recorder)(nil)
)

// events is a sink that keeps what it gets, and returns err.
type events struct {
	got []telemetry.Event
	err error
}

func (s *events) Event(e telemetry.Event) error {
	s.got = append(s.got, e)
	return s.err
}

// names returns what identifies each event.
func (s *events) names() (names []string) {
	for _, e := range s.got {
		names = append(names, fmt.Sprintf("%d %s %s", e.Step, e.Tensor, e.Op))
	}
	return names
}

func TestEventSumsUpTheBlocksOfAStep(t *testing.T) {
	var sink events
	rec := telemetry.New(&sink)
	require.NoError(t, rec.Step(7))
	fine := fp8.Stats{Elements: 10, Amax: 2, Smallest: 0.5, Zeros: 1}
	bad := fp8.Stats{Elements: 4, Amax: 500, Smallest: 1, SaturatedNeg: 1, Flushed: 1, NaN: 1}
	rec.Block("quantize", "w", 0, 0, 0.25, &fine)
	rec.Block("quantize", "w", 1, 2, 8, &bad)
	rec.Block("quantize", "w", 1, 3, 2, &fine)
	rec.NonFinite("quantize", "w", 12, math.NaN())
	rec.NonFinite("quantize", "w", 2, math.Inf(1))
	require.NoError(t, rec.Flush())

	require.Len(t, sink.got, 1)
	e := sink.got[0]
	require.True(t, math.IsNaN(e.First.Value))
	e.First.Value = 0
	require.Equal(t, telemetry.Event{
		Step: 7,
		Summary: telemetry.Summary{
			Tensor: "w", Op: "quantize",
			Blocks: 3, ScaleMin: 0.25, ScaleMax: 8,
			Stats: fp8.Stats{Elements: 24, Amax: 500, Smallest: 0.5, SaturatedNeg: 1, Flushed: 1, NaN: 1, Zeros: 2},
			Worst: telemetry.Block{Step: 7, Row: 1, Col: 2, Scale: 8, Stats: bad},
		},
		First: telemetry.NonFinite{Step: 7, Tensor: "w", Op: "quantize", Index: 12},
	}, e)
	require.Equal(t, 1.0/24, e.SaturatedShare())
	require.Equal(t, 1.0/24, e.FlushedShare())
	require.Equal(t, 3.0/24, e.LostShare())
	require.Equal(t, 3.0/4, e.Worst.LostShare())
	require.Zero(t, telemetry.Summary{}.LostShare())
}

func TestEventsAreSortedAndOnlyOfTheStep(t *testing.T) {
	var sink events
	rec := telemetry.New(&sink)
	st := fp8.Stats{Elements: 1}
	for _, n := range []string{"b", "c", "a"} {
		rec.Block("quantize", n, 0, 0, 1, &st)
	}
	rec.Block("cast", "b", 0, 0, 1, &st)
	require.NoError(t, rec.Step(1))
	require.NoError(t, rec.Step(2))
	rec.Block("quantize", "c", 0, 0, 1, &st)
	require.NoError(t, rec.Flush())
	rec.Block("quantize", "c", 0, 0, 1, &st)
	require.NoError(t, rec.Flush())
	require.Equal(t, []string{"0 a quantize", "0 b cast", "0 b quantize", "0 c quantize", "2 c quantize", "2 c quantize"}, sink.names())
}

func TestWorstBlock(t *testing.T) {
	lost := func(n int64) *fp8.Stats { return &fp8.Stats{Elements: 8, Flushed: n} }
	for _, c := range []struct {
		name     string
		report   func(*telemetry.Recorder)
		row, col int
	}{
		{"nothing lost: the first", func(r *telemetry.Recorder) {
			r.Block("op", "t", 1, 0, 1, lost(0))
			r.Block("op", "t", 0, 3, 1, lost(0))
			r.Block("op", "t", 0, 1, 1, lost(0))
		}, 0, 1},
		{"share, not number", func(r *telemetry.Recorder) {
			r.Block("op", "t", 0, 0, 1, &fp8.Stats{Elements: 100, Flushed: 10})
			r.Block("op", "t", 5, 5, 1, lost(4))
		}, 5, 5},
		{"earlier step before lower row", func(r *telemetry.Recorder) {
			r.Block("op", "t", 9, 9, 1, lost(4))
			_ = r.Step(1)
			r.Block("op", "t", 0, 0, 1, lost(4))
		}, 9, 9},
	} {
		t.Run(c.name, func(t *testing.T) {
			var rec telemetry.Recorder
			c.report(&rec)
			worst := rec.Totals()[0].Worst
			require.Equal(t, [2]int{c.row, c.col}, [2]int{worst.Row, worst.Col})
		})
	}
}

func TestTotalsIncludeTheOpenStep(t *testing.T) {
	var rec telemetry.Recorder
	require.Empty(t, rec.Totals())
	st := fp8.Stats{Elements: 3}
	rec.Block("op", "t", 0, 0, 1, &st)
	require.NoError(t, rec.Step(1))
	rec.Block("op", "t", 0, 0, 4, &st)
	for range 2 { // looking changes nothing
		totals := rec.Totals()
		require.Len(t, totals, 1)
		require.EqualValues(t, 2, totals[0].Events)
		require.EqualValues(t, 6, totals[0].Stats.Elements)
		require.Equal(t, [2]float32{1, 4}, [2]float32{totals[0].ScaleMin, totals[0].ScaleMax})
		totals[0].Stats.Elements = 99
	}
}

func TestNaNScaleShows(t *testing.T) {
	var rec telemetry.Recorder
	for _, s := range []float32{1, float32(math.NaN()), 2} {
		rec.Block("op", "t", 0, 0, s, &fp8.Stats{Elements: 1})
	}
	total := rec.Totals()[0]
	require.True(t, total.ScaleMin != total.ScaleMin && total.ScaleMax != total.ScaleMax)
}

func TestStatsOfTheCallerAreCopied(t *testing.T) {
	var rec telemetry.Recorder
	st := fp8.Stats{Elements: 1, Flushed: 1, Detail: new(fp8.Detail)}
	rec.Block("op", "t", 0, 0, 1, &st)
	st.Flushed = 5
	total := rec.Totals()[0]
	require.Equal(t, fp8.Stats{Elements: 1, Flushed: 1}, total.Stats)
	require.Equal(t, fp8.Stats{Elements: 1, Flushed: 1}, total.Worst.Stats)
}

func TestFirstNonFiniteIsTheFirstInTime(t *testing.T) {
	var sink events
	rec := telemetry.New(&sink)
	_, ok := rec.FirstNonFinite()
	require.False(t, ok)
	rec.NonFinite("op", "finite", 0, 1)
	require.NoError(t, rec.Step(3))
	rec.NonFinite("op", "z", 5, math.Inf(-1))
	rec.NonFinite("op", "a", 0, math.NaN())
	require.NoError(t, rec.Step(4))
	rec.NonFinite("op", "a", 0, math.NaN())

	first, ok := rec.FirstNonFinite()
	require.True(t, ok)
	require.Equal(t, telemetry.NonFinite{Step: 3, Tensor: "z", Op: "op", Index: 5, Value: math.Inf(-1)}, first)
	require.Equal(t, []string{"3 a op", "3 z op"}, sink.names())

	require.NoError(t, rec.Step(2))
	rec.NonFinite("op", "a", 0, math.Inf(1))
	first, _ = rec.FirstNonFinite()
	require.EqualValues(t, 2, first.Step, "steps count, even if they go back")
}

func TestSinkErrors(t *testing.T) {
	broken, full, fine := errors.New("broken"), errors.New("full"), events{}
	rec := telemetry.New(&events{err: broken}, &events{err: full}, &fine)
	require.NoError(t, rec.Err())
	st := fp8.Stats{Elements: 1}
	rec.Block("op", "a", 0, 0, 1, &st)
	rec.Block("op", "b", 0, 0, 1, &st)
	err := rec.Step(1)
	require.ErrorIs(t, err, broken)
	require.ErrorIs(t, err, full)
	require.ErrorContains(t, err, `step 0, tensor "a", operation "op"`)
	require.Len(t, fine.got, 2, "one sink's error keeps nothing from another")
	require.NoError(t, rec.Step(2), "an empty step has no events to fail")
	require.Equal(t, err, rec.Err())
	require.Len(t, rec.Totals(), 2)
}

// curious is a sink that calls everything a sink may.
type curious struct{ rec *telemetry.Recorder }

func (s curious) Event(e telemetry.Event) error {
	s.rec.Block("sink", e.Tensor, 0, 0, 1, &e.Stats)
	s.rec.NonFinite("sink", e.Tensor, 0, math.NaN())
	s.rec.Totals()
	s.rec.FirstNonFinite()
	s.rec.Merge(s.rec)
	_, _ = s.rec.MarshalJSON()
	return errors.Join(s.rec.Err(), s.rec.Event(e))
}

func TestSinkMayUseItsRecorder(t *testing.T) {
	var sink curious
	rec := telemetry.New(&sink)
	sink.rec = rec
	rec.Block("op", "t", 0, 0, 1, &fp8.Stats{Elements: 1})
	require.NoError(t, rec.Flush())
}

func TestRecordsQuantization(t *testing.T) {
	var sink events
	rec := telemetry.New(&sink)
	w := tensor.Tensor{Name: "w", Format: fp8.E4M3, Shape: []int{2, 4}, Block: tensor.Block{Rows: 1, Cols: 2}}
	src := []float32{1, 2, 3, 4, 0, 1e6, float32(math.Inf(1)), 1e-9}
	q := tensor.Quantizer{Scale: func(int, float32, bool) fp8.Scale { return fp8.Scale{} }, Options: tensor.Options{Reporter: rec, Op: "forward"}}
	require.NoError(t, tensor.Quantize(t.Context(), &w, src, q))
	require.NoError(t, rec.Flush())

	var want fp8.Stats
	fp8.Encode(make([]byte, len(src)), src, fp8.E4M3, fp8.Policy{}, &want)
	require.Equal(t, []telemetry.Event{{
		Summary: telemetry.Summary{
			Tensor: "w", Op: "forward", Blocks: 4, ScaleMin: 1, ScaleMax: 1, Stats: want,
			Worst: telemetry.Block{Row: 1, Col: 1, Scale: 1,
				Stats: fp8.Stats{Elements: 2, Amax: float64(src[7]), Smallest: float64(src[7]), Flushed: 1, PosInf: 1}},
		},
		First: telemetry.NonFinite{Tensor: "w", Op: "forward", Index: 6, Value: math.Inf(1)},
	}}, sink.got)
}

func TestSnapshot(t *testing.T) {
	require.Equal(t, telemetry.Snapshot{}, (*telemetry.Recorder)(nil).Snapshot())
	rec := new(telemetry.Recorder)
	require.Equal(t, telemetry.Snapshot{Totals: []telemetry.Total{}}, rec.Snapshot())
	require.NoError(t, rec.Step(3))
	rec.Block("op", "t", 0, 0, 1, &fp8.Stats{Elements: 2, PosInf: 1})
	rec.NonFinite("op", "t", 1, math.Inf(1))
	s := rec.Snapshot()
	require.EqualValues(t, 3, s.Step)
	require.Equal(t, rec.Totals(), s.Totals)
	require.Equal(t, telemetry.NonFinite{Step: 3, Tensor: "t", Op: "op", Index: 1, Value: math.Inf(1)}, s.First)
	rec.Block("op", "t", 0, 0, 1, &fp8.Stats{Elements: 2})
	require.EqualValues(t, 2, s.Totals[0].Stats.Elements)
}
