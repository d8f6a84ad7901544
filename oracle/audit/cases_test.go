package audit

import (
	"encoding/binary"
	"hash/crc32"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/tensor"
)

// TestCases demands that every public failure is found.
func TestCases(t *testing.T) {
	for _, c := range Cases() {
		t.Run(c.Name, func(t *testing.T) {
			if testing.Short() && (c.Name == "vllm-48847" || c.Name == "rocm-libraries-11115") {
				t.Skip("takes seconds: not with -short")
			}
			// Its product is the largest, and none of its claims are of a better test: those
			// are proposed for the other cases and by TestProposal.
			alone := testing.Short() || c.Name == "vllm-48847" && !testutil.Full()
			r, err := c.Run(t.Context(), Options{NoProposal: alone})
			require.NoError(t, err)
			for _, claim := range r.Case.Claims {
				require.True(t, claim.Holds, claim.Text)
			}
			require.True(t, r.Case.Reproduced())
			require.NotEmpty(t, c.Says)
			require.NotEmpty(t, c.Assumed)
			if !alone {
				require.Zero(t, r.Proposal.FalseFailures, "correct kernels pass the better test")
				require.Zero(t, r.Proposal.Rounding, "%v", unseen(r.Proposal))
			}
		})
	}
	_, err := CaseNamed("none")
	require.ErrorIs(t, err, ErrCase)
}

// TestSameOperands pins the operands of cases that compute SiLU: they are the same on every
// machine.
func TestSameOperands(t *testing.T) {
	sum := func(x *tensor.Tensor) uint32 {
		h := crc32.NewIEEE()
		h.Write(x.Codes)
		require.NoError(t, binary.Write(h, binary.LittleEndian, x.Scales))
		return h.Sum32()
	}
	p, err := quantized(t.Context())
	require.NoError(t, err)
	assert.Equal(t, uint32(0x2fa642b4), sum(p.A), "vllm-29470")
	p, other, err := requantized(t.Context())
	require.NoError(t, err)
	assert.Equal(t, uint32(0xcc71cae2), sum(p.A), "vllm-48847")
	assert.Equal(t, uint32(0x18b47269), sum(other), "its reference")
}

// TestMisread counts how many scales flashinfer's kernel read from a wrong address: 99.8 %
// is what is reported.
func TestMisread(t *testing.T) {
	const rows, cols = 256, 1024 / 32
	wrong := 0
	for r := range rows {
		for c := range cols {
			if misread.Written.Index(r, c, rows, cols) != misread.Read.Index(r, c, rows, cols) {
				wrong++
			}
		}
	}
	require.InDelta(t, 0.998, float64(wrong)/(rows*cols), 0.002)
}
