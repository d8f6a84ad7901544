package inspect

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSize(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 9999: "9999 B", 10000: "10 kB", 999_499: "999 kB", 999_500: "1 MB", 12_345_678: "12.3 MB", 5e9: "5 GB", 3e15: "3000 TB"} {
		require.Equal(t, want, size(n))
	}
}
