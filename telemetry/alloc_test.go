package telemetry_test

import (
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/telemetry"
)

func TestNilRecorder(t *testing.T) {
	var rec *telemetry.Recorder
	var other telemetry.Recorder
	st := fp8.Stats{Elements: 1, NaN: 1}
	var e telemetry.Event
	require.Zero(t, testing.AllocsPerRun(100, func() {
		rec.Block("op", "t", 0, 0, 1, &st)
		rec.NonFinite("op", "t", 0, math.NaN())
		rec.Merge(&other)
		other.Merge(rec)
		_, found := rec.FirstNonFinite()
		err := errors.Join(rec.Step(1), rec.Flush(), rec.Event(e), rec.Err())
		if found || err != nil || rec.Totals() != nil {
			panic("a nil Recorder knows something")
		}
	}))
	state, err := rec.MarshalJSON()
	require.NoError(t, err)
	require.JSONEq(t, `{"step":0,"firstNonFinite":null,"totals":[]}`, string(state))
}

func TestKnownTensorsAllocateNothing(t *testing.T) {
	var rec telemetry.Recorder
	st := fp8.Stats{Elements: 1, NaN: 1}
	report := func() {
		rec.Block("op", "t", 0, 0, 1, &st)
		rec.NonFinite("op", "t", 0, math.NaN())
	}
	report()
	require.Zero(t, testing.AllocsPerRun(100, report))
}
