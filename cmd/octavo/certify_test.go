package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/certify"
)

func TestCertify(t *testing.T) {
	text := succeed(t, "certify", "--steps", "1", "--vary", "workers,order")
	require.Contains(t, text, "workers  3 workers")
	require.Contains(t, text, "order    1 rank, a tree")
	require.NotContains(t, text, "zero  ")
	require.Contains(t, text, "\nPASS: every bit is the same wherever that is promised, in all 1\nNot compared: level, replicas, ranks, zero,")

	var r certify.Report
	require.NoError(t, json.Unmarshal([]byte(succeed(t,
		"certify", "--steps", "1", "--vary", "order", "--recipe", "none", "--json")), &r))
	require.True(t, r.Equal)
	require.Equal(t, certify.FP32, r.Recipe)
	require.Len(t, r.Certificates, 1)
	require.False(t, r.Certificates[0].Promised)
	require.Zero(t, r.Certificates[0].First.Step)

	text = succeed(t, "certify", "--steps", "1", "--layout", "data=2,expert=2,tensor=2", "--model", "experts")
	require.Contains(t, text, "layouts  experts: data=2,tensor=2,expert=2  experts: 1 rank, 2 slices, 2 shards  ")
	sent := []string{"certify", "--steps", "1", "--layout", "data=2,zero=2", "--send", "weight=mxfp8"}
	differs := octavo(strings.NewReader(""), sent...)
	require.Equal(t, 1, differs.status)
	require.Equal(t, "octavo: 1 certificate has other bits than promised\n", differs.stderr)
	require.Contains(t, differs.stdout,
		"First differences\n  layouts, data=2,zero=2, weight mxfp8: step 0, rank 0,\n  model.layers.0.")
	succeed(t, append(sent, "--twin-sends")...)
	fail(t, 2, "--layout: Layout.Zero is 7: want 0 to 3", "certify", "--layout", "zero=7")
	fail(t, 2, "--send: Layout.Exchanges[\"weight\"] is bf16: stage 0 of ZeRO sends no weights",
		"certify", "--layout", "data=2", "--send", "weight=bf16")
	fail(t, 2, "--model is of a layout: give --layout, too", "certify", "--model", "experts")
	fail(t, 2, "--layout: it does not go with --faults", "certify", "--faults", "--layout", "data=2")
	fail(t, 2, "--layout proves one layout alone", "certify", "--layout", "data=2", "--vary", "order")

	fail(t, 2, "want some of workers, level,", "certify", "--vary", "workers,clocks")
	fail(t, 2, "want no arguments", "certify", "now")
	fail(t, 2, "--vary: it does not go with --faults", "certify", "--faults", "--vary", "order")
	fail(t, 2, "--steps 3: want at least 4 with --faults", "certify", "--faults", "--steps", "3")
}
