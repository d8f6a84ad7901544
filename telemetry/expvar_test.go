package telemetry_test

import (
	"expvar"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/telemetry"
)

func TestPublish(t *testing.T) {
	var rec telemetry.Recorder
	name := fmt.Sprintf("octavo_test_%p", &rec) // free in each run of the test
	rec.Publish(name)
	published := expvar.Get(name)
	require.Panics(t, func() { rec.Publish(name) })
	require.JSONEq(t, `{"step":0,"firstNonFinite":null,"totals":[]}`, published.String())

	_ = rec.Step(4)
	st := fp8.Stats{Elements: 2, Amax: 1, Smallest: 1, PosInf: 1}
	rec.Block("op", "t", 0, 1, float32(math.NaN()), &st)
	rec.NonFinite("op", "t", 1, math.Inf(1))
	stats := `{"elements":2,"amax":1,"smallest":1,"saturatedPos":0,"saturatedNeg":0,"becameNonFinite":0,"flushed":0,"subnormal":0,"zeros":0,"nan":0,"posInf":1,"negInf":0}`
	require.JSONEq(t, `{"step":4,
		"firstNonFinite":{"step":4,"tensor":"t","op":"op","index":1,"value":"+Inf"},
		"totals":[{"events":1,"tensor":"t","op":"op","blocks":1,"scaleMin":"NaN","scaleMax":"NaN","stats":`+stats+`,
			"worst":{"step":4,"row":0,"col":1,"scale":"NaN","stats":`+stats+`}}]}`, published.String())
}
