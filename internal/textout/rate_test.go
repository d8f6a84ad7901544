package textout

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRate(t *testing.T) {
	for x, want := range map[float64]string{
		0.004: "0.00", 1.234: "1.23", 9.994: "9.99", 9.996: "10.0", 15.74: "15.7", 99.94: "99.9", 99.96: "100", 1234.6: "1235",
	} {
		require.Equal(t, want, Rate(x))
	}
}
