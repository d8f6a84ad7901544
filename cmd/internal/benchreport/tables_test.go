package benchreport

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/lab/page"
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
	require.Equal(t, `é       wide group     g     g
                 a  best  roof
one              1    10
second                 7  100%
`, out.String())
}

func TestHTMLTable(t *testing.T) {
	var table, bare crossTable
	table.put("one", "a", "best", "1")
	table.put("one", "a", "median", "<2>")
	table.put("two", "b", "best", "3")
	var p page.Page
	table.putOn(&p, "A table")
	text := string(p.HTML())
	for _, want := range []string{
		`aria-label="A table"`, `<tr><td></td><th class="number">a best</th><th class="number">a median</th><th class="number">b best</th></tr>`,
		`<tr><td class="whole">one</td><td class="number">1</td><td class="number">&lt;2&gt;</td><td class="number"></td></tr>`,
		`<tr><td class="whole">two</td><td class="number"></td><td class="number"></td><td class="number">3</td></tr>`,
	} {
		require.Contains(t, text, want)
	}
	bare.put("one", "a", "", "1")
	var q page.Page
	bare.putOn(&q, "")
	require.Contains(t, string(q.HTML()), `<th class="number">a</th>`)
}
