package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/cmd/internal/certify"
)

func TestCertify(t *testing.T) {
	text := succeed(t, "certify", "--steps", "1", "--vary", "workers,order")
	require.Contains(t, text, "workers  3 workers")
	require.Contains(t, text, "order    1 rank, a tree")
	require.NotContains(t, text, "zero")
	require.Contains(t, text, "\nPASS: every bit is the same wherever that is promised, in all 1\n")

	var r certify.Report
	require.NoError(t, json.Unmarshal([]byte(succeed(t,
		"certify", "--steps", "1", "--vary", "order", "--recipe", "fp32", "--json")), &r))
	require.True(t, r.Equal)
	require.Equal(t, certify.FP32, r.Recipe)
	require.Len(t, r.Certificates, 1)
	require.False(t, r.Certificates[0].Promised)
	require.Zero(t, r.Certificates[0].First.Step)

	fail(t, 2, "want some of workers, level,", "certify", "--vary", "workers,clocks")
	fail(t, 2, "want no arguments", "certify", "now")
	fail(t, 2, "--vary: it does not go with --faults", "certify", "--faults", "--vary", "order")
	fail(t, 2, "--steps 3: want at least 4 with --faults", "certify", "--faults", "--steps", "3")
}

func TestCertifyFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("does many runs")
	}
	require.Contains(t, succeed(t, "certify", "--faults"), "\nPASS: 6 of 6 found in their step by the twin, 4 without one\n")
}
