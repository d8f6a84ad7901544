package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/oracle/judge"
)

// TestModelFlags reads flags, and demands what they say.
func TestModelFlags(t *testing.T) {
	hopper := oracle.Kernel{Model: oracle.HopperWGMMA(), Promote: 128, Scales: oracle.BThenA}
	for _, test := range []struct {
		flags []string
		want  judge.Claim
	}{
		{nil, judge.Claim{}},
		{[]string{"--bound", "float32"}, judge.Claim{}},
		{[]string{"--bound", "float32-truncated"},
			judge.Claim{Accumulation: oracle.Accumulation{Truncated: true}}},
		{[]string{"--bound", "dequantized"},
			judge.Claim{Accumulation: oracle.Accumulation{Dequantized: true}}},
		{[]string{"--bound", "hopper-wgmma", "--promote", "128", "--scale-order", "b-then-a"},
			judge.Claim{Accumulation: oracle.Accumulation{Scales: oracle.BThenA, Kernel: hopper}}},
		{[]string{"--model", "canonical"}, judge.Claim{Want: judge.Canonical}},
		{[]string{"--model", "hopper-wgmma", "--promote", "128", "--scale-order", "b-then-a"},
			judge.Claim{Want: judge.Predicted, Kernel: hopper}},
	} {
		var d modelFlags
		cmd := newVersionCommand()
		d.add(cmd)
		require.NoError(t, cmd.ParseFlags(test.flags))
		got, err := d.claim()
		require.NoError(t, err)
		require.Equal(t, test.want, got, "%v", test.flags)
	}
}
