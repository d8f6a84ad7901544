package textout

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRanges(t *testing.T) {
	for want, all := range map[string][]int{
		"":                          nil,
		"7":                         {7},
		"0-3, 7":                    {0, 1, 2, 3, 7},
		"0-1, 3, 5, 7-8":            {0, 1, 3, 5, 7, 8},
		"0-1, 3, 5, 7 and 2 others": {0, 1, 3, 5, 7, 9, 11},
	} {
		require.Equal(t, want, Ranges(all))
	}
}
