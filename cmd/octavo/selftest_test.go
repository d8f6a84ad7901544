package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/cmd/internal/selftest"
)

func TestSelftest(t *testing.T) {
	require.Contains(t, succeed(t, "selftest", "--time", "100ms"), "PASS: every bit is the same at every level\n")
	var r selftest.Result
	require.NoError(t, json.Unmarshal([]byte(succeed(t, "selftest", "--time", "1ms", "--seed", "9", "--json")), &r))
	require.True(t, r.Pass)
	require.EqualValues(t, 9, r.Seed)
	for _, key := range []string{"pass", "levels", "refused", "processors", "seed", "seconds", "checks"} {
		require.Contains(t, selftestLong, key)
	}
	fail(t, 2, "want a time such as 10s or 5m", "selftest", "--time", "10")
	fail(t, 2, "want a time such as 10s or 5m", "selftest", "--time", "-1s")
	fail(t, 2, "want a whole number", "selftest", "--seed", "-1")
	fail(t, 2, "want no arguments", "selftest", "now")
}

// TestSelftestReport has a fault, and an interruption.
func TestSelftestReport(t *testing.T) {
	fault := &selftest.Fault{Check: "encode", Level: "avx2", Seed: 12, What: "codes", Place: "element 1 of 2", Want: "7F", Got: "7E"}
	for _, asJSON := range []bool{false, true} {
		var out bytes.Buffer
		cmd := newSelftestCommand()
		cmd.SetOut(&out)
		ctx, stop := context.WithCancelCause(context.Background())
		require.EqualError(t, reportSelftest(ctx, cmd, &selftest.Result{Fault: fault}, asJSON),
			"encode at level avx2: codes, element 1 of 2: got 7E, want 7F: do not trust this machine; octavo selftest --seed 12 repeats it")
		require.Contains(t, out.String(), "element 1 of 2")
		require.NoError(t, reportSelftest(ctx, cmd, &selftest.Result{Pass: true}, asJSON))
		stop(interruption{os.Interrupt})
		require.EqualError(t, reportSelftest(ctx, cmd, &selftest.Result{Pass: true}, asJSON),
			"stopped by Ctrl-C: what was tested until then has no fault")
	}
}
