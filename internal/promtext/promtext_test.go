package promtext_test

import (
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/promtext"
	"github.com/octavo-fp8/octavo/internal/promtext/promtexttest"
)

func TestWrite(t *testing.T) {
	a := promtext.Family{Name: "a_total", Help: "First\\line\nand \"second\".", Type: promtext.Counter}
	a.Add(3)
	b := promtext.Family{Name: "b", Help: "B.", Type: promtext.Gauge}
	b.Add(math.NaN(), promtext.Label{Name: "x", Value: "a\"b\\n\nc"}, promtext.Label{Name: "y", Value: ""})
	b.Add(math.Inf(-1), promtext.Label{Name: "x", Value: "größe"})
	empty := promtext.Family{Name: "c", Help: "Has no samples.", Type: promtext.Gauge}
	var text strings.Builder
	require.NoError(t, promtext.Write(&text, a, empty, b))
	require.Equal(t, `# HELP a_total First\\line\nand "second".
# TYPE a_total counter
a_total 3
# HELP b B.
# TYPE b gauge
b{x="a\"b\\n\nc",y=""} NaN
b{x="größe"} -Inf
`, text.String())
	families, err := promtexttest.Parse(text.String())
	require.NoError(t, err)
	require.Len(t, families, 2)
	require.Equal(t, a, families[0])
	require.Equal(t, b.Samples[0].Labels, families[1].Samples[0].Labels)
}

func TestValue(t *testing.T) {
	for x, want := range map[float64]string{
		0: "0", 1: "1", -2: "-2", 123456789: "123456789", 1 << 53: "9007199254740992", 1 << 60: "1.152921504606847e+18",
		0.1: "0.1", float64(float32(0.1)): "0.10000000149011612", 5e-324: "5e-324", math.MaxFloat64: "1.7976931348623157e+308",
		math.Inf(1): "+Inf", math.Inf(-1): "-Inf",
	} {
		require.Equal(t, want, promtext.Value(x))
	}
	require.Equal(t, "NaN", promtext.Value(math.NaN()))
	require.Equal(t, "-0", promtext.Value(math.Copysign(0, -1)))
}

func TestLabelValue(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "layers.0.w": "layers.0.w", `a"b`: `a"b`, "a\nb": "a\nb",
		"\xff": `"\xff"`, `"\xff"`: `"\"\\xff\""`, "a\x00": `"a\x00"`,
	} {
		require.Equal(t, want, promtext.LabelValue(text))
	}
}

// FuzzWrite checks that any two texts are label values by which samples differ, and that
// what is written reads back.
func FuzzWrite(f *testing.F) {
	for _, c := range [][3]string{
		{"", "a", ""}, {"\xff", `"\xff"`, "\\"}, {"a\nb", `a\nb`, "\n"}, {"a\x00", "a", "\r"}, {`"`, `\"`, `"`},
		{"a,b=\"c\"}", "a", "# HELP"}, {"\u2028", "\U0010ffff", "\t"}, {"\ufffd", "\xff", "\ufffd"},
	} {
		f.Add(c[0], c[1], c[2], 0.1)
	}
	f.Fuzz(func(t *testing.T, a, b, help string, value float64) {
		help = strings.ToValidUTF8(strings.ReplaceAll(help, "\x00", ""), "")
		family := promtext.Family{Name: "m", Help: help, Type: promtext.Gauge}
		family.Add(value, promtext.Label{Name: "l", Value: a})
		if a != b {
			family.Add(value, promtext.Label{Name: "l", Value: b})
		}
		var text strings.Builder
		require.NoError(t, promtext.Write(&text, family))
		families, err := promtexttest.Parse(text.String())
		require.NoError(t, err)
		require.Len(t, families, 1)
		require.Equal(t, help, families[0].Help)
		require.Len(t, families[0].Samples, len(family.Samples))
		for i, s := range families[0].Samples {
			require.Equal(t, promtext.LabelValue(family.Samples[i].Labels[0].Value), s.Labels[0].Value)
			if value == value {
				require.Equal(t, math.Float64bits(value), math.Float64bits(s.Value))
			} else {
				require.True(t, math.IsNaN(s.Value))
			}
		}
	})
}

// broken is a writer that takes nothing.
type broken struct{}

var errFull = errors.New("full")

func (broken) Write([]byte) (int, error) { return 0, errFull }

func TestWriteError(t *testing.T) {
	f := promtext.Family{Name: "m", Help: "M.", Type: promtext.Gauge}
	require.NoError(t, promtext.Write(io.Discard, f))
	f.Add(1)
	require.ErrorIs(t, promtext.Write(broken{}, f), errFull)
}

// TestParse has texts that are not in the format, so that the tests that parse can fail.
func TestParse(t *testing.T) {
	good := "# HELP m M.\n# TYPE m counter\nm{a=\"b\"} 1\n"
	_, err := promtexttest.Parse(good)
	require.NoError(t, err)
	for _, bad := range []string{
		good[:len(good)-1], good + good, good + "m{a=\"b\"} 2\n", good + "n 1\n", "m 1\n", "# HELP m M.\n",
		"# TYPE m gauge\nm 1\n", "# HELP m M.\n# TYPE n gauge\nm 1\n", good + "m{a=\"b} 1\n", good + "m{a=\"\\x\"} 1\n",
		good + "m{a=\"\xff\"} 1\n", good + "m -1\n", good + "m NaN\n", good + "m inf\n", good + "\n", good + "m{1=\"\"} 1\n",
	} {
		_, err := promtexttest.Parse(bad)
		require.Error(t, err, "%q", bad)
	}
}
