package benchreport

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

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

func TestWideTableIsSplit(t *testing.T) {
	var table crossTable
	for _, group := range []string{"first", "second", "third"} {
		table.put("a row with a long name", group, "column", "1234567890123456")
	}
	table.put("another", "second", "column", "2")
	parts := table.split(64)
	require.Len(t, parts, 2)
	require.Equal(t, []string{"a row with a long name", "another"}, parts[0].rows)
	require.Equal(t, []string{"a row with a long name"}, parts[1].rows, "the other row has no cell in the third group")
	for _, part := range parts {
		var out strings.Builder
		require.NoError(t, part.print(&out))
		for line := range strings.Lines(out.String()) {
			require.LessOrEqual(t, len(line)-1, 64)
		}
	}
	require.Len(t, table.split(1), 3, "each group alone")
}

func TestHTMLTable(t *testing.T) {
	var table crossTable
	table.put("one", "a", "best", "1")
	table.put("one", "a", "median", "2")
	table.put("two", "b", "best", "3")
	require.Equal(t, htmlTable{
		Name: "A table", Groups: []htmlGroup{{"a", 2}, {"b", 1}}, Columns: []string{"best", "median", "best"},
		Rows: []htmlRow{{"one", []string{"1", "2", ""}}, {"two", []string{"", "", "3"}}},
	}, table.html("A table"))
	var bare crossTable
	bare.put("one", "a", "", "1")
	require.Nil(t, bare.html("").Columns)
}
