package expvars_test

import (
	"expvar"
	"fmt"
	"math"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/telemetry"
	"github.com/octavo-fp8/octavo/telemetry/expvars"
)

// TestNothingElseServesHTTP: whoever imports any other package of the library gets no
// page registered with http.DefaultServeMux, and links no server unless for Prometheus.
func TestNothingElseServesHTTP(t *testing.T) {
	const library = "github.com/octavo-fp8/octavo/"
	list, err := exec.Command("go", "list", "-f", `{{.Module.Path}}/ {{.ImportPath}} {{join .Deps " "}}`, library+"...").CombinedOutput()
	require.NoError(t, err, "%s", list)
	serving := map[string][]string{}
	packages := 0
	for line := range strings.Lines(string(list)) {
		fields := strings.Fields(line)
		if fields[0] != library { // the modules beside it serve pages and drive browsers
			continue
		}
		name := strings.TrimPrefix(fields[1], library)
		if strings.HasPrefix(name, "examples/") { // programs, which nobody imports
			continue
		}
		packages++
		for _, dependency := range []string{"net/http", "expvar"} {
			if slices.Contains(fields[2:], dependency) {
				serving[dependency] = append(serving[dependency], name)
			}
		}
	}
	require.Equal(t, map[string][]string{
		"net/http": {"telemetry/expvars", "telemetry/prometheus"},
		"expvar":   {"telemetry/expvars"},
	}, serving)
	require.Greater(t, packages, 10)
}

func TestNilRecorder(t *testing.T) {
	expvars.Publish("octavo_nil", nil)
	require.Nil(t, expvar.Get("octavo_nil"))
	require.JSONEq(t, `{"step":0,"firstNonFinite":null,"totals":[]}`, expvars.Var(nil).String())
}

func TestPublish(t *testing.T) {
	var rec telemetry.Recorder
	name := fmt.Sprintf("octavo_test_%p", &rec) // free in each run of the test
	expvars.Publish(name, &rec)
	published := expvar.Get(name)
	require.Panics(t, func() { expvars.Publish(name, &rec) })
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
