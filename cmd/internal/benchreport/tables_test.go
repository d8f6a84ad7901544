package benchreport

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRateText(t *testing.T) {
	for x, want := range map[float64]string{
		0.004: "0.00", 1.234: "1.23", 9.994: "9.99", 9.996: "10.0", 15.74: "15.7", 99.94: "99.9", 99.96: "100", 1234.6: "1235",
	} {
		require.Equal(t, want, rateText(x))
	}
}

func TestCrossTable(t *testing.T) {
	var table crossTable
	table.corner = "é"
	table.put("one", "wide group", "a", "1")
	table.put("one", "g", "best", "10")
	table.put("second", "g", "best", "7")
	table.put("second", "g", "roof", "100%")
	var out strings.Builder
	err := table.print(&out)
	require.NoError(t, err)
	require.Equal(t, `é         wide group             g
                   a    best  roof
one                1      10
second                     7  100%
`, out.String())
}
