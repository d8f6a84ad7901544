package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/cmd/internal/selftest"
	"github.com/octavo-fp8/octavo/cmd/internal/selftest/pack"
)

func TestSelftest(t *testing.T) {
	require.Contains(t, succeed(t, "selftest", "--time", "100ms"), "\nPASS: ")
	var r selftest.Result
	require.NoError(t, json.Unmarshal([]byte(succeed(t, "selftest", "--time", "1ms", "--seed", "9", "--json")), &r))
	require.True(t, r.Pass)
	require.EqualValues(t, 9, r.Seed)
	for _, key := range []string{"pass", "levels", "refused", "processors", "seed", "seconds", "checks"} {
		require.Contains(t, helpOf("selftest"), key)
	}
	fail(t, 2, "want a time such as 10s or 5m", "selftest", "--time", "10")
	fail(t, 2, "want a time such as 10s or 5m", "selftest", "--time", "-1s")
	fail(t, 2, "want a whole number", "selftest", "--seed", "-1")
	fail(t, 2, "want no arguments", "selftest", "now")
}

// TestSelftestPack exports the operators, runs some of them here and reads verdicts.
func TestSelftestPack(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pack")
	require.Contains(t, succeed(t, "selftest", "--export", dir, "--seed", "3"), pack.ScriptFile)
	for _, name := range pack.FileNames() {
		require.FileExists(t, filepath.Join(dir, name))
	}
	fail(t, 2, "holds a run", "selftest", "--export", dir)

	file := filepath.Join(t.TempDir(), "verdict.json")
	require.NoError(t, os.WriteFile(file, []byte("{}"), 0o666))
	fail(t, 1, file+": this is no verdict of octavo selftest", "selftest", "--check", file)
	if !testing.Short() {
		text := succeed(t, "selftest", "--for", "1ms", "--json")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o666))
		require.Contains(t, succeed(t, "selftest", "--check", file), "PASS: every result is the right one\nCompared here: checksums of the first repetition. The rest is what the file says.\n")
		require.NotContains(t, succeed(t, "selftest", "--for", "1ms"), "Compared here")
		text = strings.Replace(text, `"pass"`, `"incomplete"`, 1)
		require.NoError(t, os.WriteFile(file, []byte(text), 0o666))
		r := octavo(strings.NewReader(""), "selftest", "--check", file)
		require.Equal(t, 1, r.status, r.stderr)
		require.Contains(t, r.stderr, file+`: the verdict is "incomplete": not all operators were run`)
		require.Contains(t, r.stdout, "INCOMPLETE: what was run is right")
	}

	fail(t, 2, "--time and --burst do not go together", "selftest", "--burst", "--time", "1s")
	fail(t, 2, "--burst and --for do not go together", "selftest", "--burst", "--for", "1s")
	fail(t, 2, "want a time such as 10s or 5m", "selftest", "--for", "0s")
	fail(t, 2, "--seed is in the verdict", "selftest", "--check", file, "--seed", "1")
	fail(t, 2, "--export prints no result", "selftest", "--export", dir, "--json")
}

// TestSelftestPackReport has a failure, and an interruption.
func TestSelftestPackReport(t *testing.T) {
	var out bytes.Buffer
	cmd := newSelftestCommand()
	cmd.SetOut(&out)
	ctx, stop := context.WithCancelCause(context.Background())
	failure := &pack.Failure{Operator: "swiglu", Level: "avx2", Seed: 1, Place: "row 1", Expected: "2", Got: "3"}
	for _, asJSON := range []bool{false, true} {
		require.EqualError(t, reportPack(ctx, cmd, &pack.Result{Outcome: pack.Fail, Failure: failure}, asJSON),
			"swiglu at level avx2, seed 1, repetition 0: row 1: got 3, want 2: do not trust this machine")
		require.NoError(t, reportPack(ctx, cmd, &pack.Result{Outcome: pack.Pass}, asJSON))
	}
	stop(interruption{os.Interrupt})
	require.EqualError(t, reportPack(ctx, cmd, &pack.Result{Outcome: pack.Incomplete}, true),
		"stopped by Ctrl-C: what was run until then is right")
	require.Contains(t, out.String(), `"verdict": "incomplete"`)
}

// TestSelftestReport has a fault, and an interruption.
func TestSelftestReport(t *testing.T) {
	fault := &selftest.Failure{Check: "encode", Level: "avx2", Seed: 12, What: "codes", Place: "element 1 of 2", Want: "7F", Got: "7E"}
	for _, asJSON := range []bool{false, true} {
		var out bytes.Buffer
		cmd := newSelftestCommand()
		cmd.SetOut(&out)
		ctx, stop := context.WithCancelCause(context.Background())
		require.EqualError(t, reportSelftest(ctx, cmd, &selftest.Result{Failure: fault}, asJSON),
			"encode at level avx2: codes, element 1 of 2: got 7E, want 7F: do not trust this machine; octavo selftest --seed 12 repeats it")
		require.Contains(t, out.String(), "element 1 of 2")
		require.NoError(t, reportSelftest(ctx, cmd, &selftest.Result{Pass: true}, asJSON))
		stop(interruption{os.Interrupt})
		require.EqualError(t, reportSelftest(ctx, cmd, &selftest.Result{Pass: true}, asJSON),
			"stopped by Ctrl-C: what was tested until then has no fault")
	}
}
