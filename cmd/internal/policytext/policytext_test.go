package policytext

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/nn"
)

func TestOf(t *testing.T) {
	again := nn.Policy{Norms: nn.Recompute, Mixed: nn.KeepFP8}
	require.Equal(t, "Layers 0-1, 3: keep all. Layer 2: recompute norms; fp8 mixed",
		Of([]nn.Policy{{}, {}, again, {}}))
}
