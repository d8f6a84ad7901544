//go:build !purego

package gemm

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestShares checks that what is fetched in shares is all of it, and once.
func TestShares(t *testing.T) {
	codes := make([]byte, 32*256)
	f := prefetch{address(codes), 32, 256}
	for shares := 5; shares > 0; shares-- {
		f.issue(shares)
	}
	require.Equal(t, prefetch{address(codes) + 32*256, 0, 256}, f)
}
