package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/cmd/internal/verify"
	"github.com/octavo-fp8/octavo/oracle"
)

// TestModelFlags reads flags, and demands what they say.
func TestModelFlags(t *testing.T) {
	hopper := oracle.Kernel{Model: oracle.HopperWGMMA(), Promote: 128, Scales: oracle.BThenA}
	for _, test := range []struct {
		flags []string
		want  verify.Demand
	}{
		{nil, verify.Demand{}},
		{[]string{"--bound", "float32"}, verify.Demand{}},
		{[]string{"--bound", "float32-truncated"}, verify.Demand{Accumulation: oracle.Accumulation{Truncated: true}}},
		{[]string{"--bound", "dequantized"}, verify.Demand{Accumulation: oracle.Accumulation{Dequantized: true}}},
		{[]string{"--bound", "hopper-wgmma", "--promote", "128", "--scale-order", "b-then-a"},
			verify.Demand{Accumulation: oracle.Accumulation{Scales: oracle.BThenA, Kernel: hopper}}},
		{[]string{"--model", "canonical"}, verify.Demand{Want: verify.Canonical}},
		{[]string{"--model", "hopper-wgmma", "--promote", "128", "--scale-order", "b-then-a"}, verify.Demand{Want: verify.Predicted, Kernel: hopper}},
	} {
		var d modelFlags
		cmd := newVersionCommand()
		d.add(cmd)
		require.NoError(t, cmd.ParseFlags(test.flags))
		got, err := d.demand()
		require.NoError(t, err)
		require.Equal(t, test.want, got, "%v", test.flags)
	}
}
