package explain

import (
	"encoding"
	"encoding/json"
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

type kind string

type row struct{ name, text string }

var errKind = errors.New("no such thing")

var animals = NewTable[kind]("zoo", errKind, []row{{"none", "nothing"}, {"late", "it is late"}, {"early", "it is early"}}, func(r row) string { return r.name })

func (k kind) MarshalText() ([]byte, error)     { return animals.MarshalText(k) }
func (k *kind) UnmarshalText(text []byte) error { return animals.UnmarshalText(k, text) }

var _ encoding.TextUnmarshaler = new(kind)

// TestTable takes kinds to JSON and back.
func TestTable(t *testing.T) {
	require.Equal(t, []kind{"late", "early"}, animals.Kinds())
	require.Negative(t, animals.Compare("", "late"))
	require.Negative(t, animals.Compare("late", "early"))
	require.Equal(t, "none", animals.String(""))
	text, err := json.Marshal([]kind{"", "early"})
	require.NoError(t, err)
	require.Equal(t, `["none","early"]`, string(text))
	var again []kind
	require.NoError(t, json.Unmarshal([]byte(`["NONE","Early"]`), &again))
	require.Equal(t, []kind{"", "early"}, again)
	for _, k := range []kind{"", "late", "early"} {
		r, err := animals.Row(k)
		require.NoError(t, err)
		require.Equal(t, r.name, animals.String(k))
	}
	for _, bad := range []string{"sleepy", ""} {
		_, err = animals.Parse(bad)
		require.ErrorIs(t, err, errKind)
		require.ErrorContains(t, err, `zoo: unknown kind of fault "`+bad+`": want one of none, late, early`)
	}
	_, err = json.Marshal(kind("sleepy"))
	require.ErrorIs(t, err, errKind)
	_, err = animals.Row("sleepy")
	require.ErrorIs(t, err, errKind)
	k := kind("late")
	require.Error(t, k.UnmarshalText([]byte("sleepy")))
	require.Equal(t, kind("late"), k)
}

func TestTally(t *testing.T) {
	var c Tally
	for range 10 {
		c.Count(true, Fits, 3)
		c.Count(false, Fits, 100) // a right element is none
	}
	require.Equal(t, Tally{Explained: 10, Evidence: 30}, c)
	require.True(t, c.Convinces(1, 1<<10))
	require.False(t, c.Convinces(1, 1<<11), "one of 2048 faults fits as well in 2^19 times")
	c.Count(true, Refuted, 3)
	require.True(t, c.Explains(0.9))
	require.False(t, c.Explains(1))
	for range 11 {
		require.True(t, c.Explains(0.9))
		c.Count(true, Open, 3)
	}
	c.Count(true, Open, 3)
	require.False(t, c.Explains(0.9), "it says of less than half of them what they should be")
	c.Count(false, Refuted, 3)
	require.Equal(t, Tally{Explained: 10, Missed: 1, Open: 12, Contradicted: 1, Evidence: 30}, c)
}

func TestEvidence(t *testing.T) {
	require.Equal(t, 3.0, Evidence(8, 1, 16))
	require.Equal(t, 16.0, Evidence(0x1p40, 1, 16))
	require.Equal(t, 0.0, Evidence(1, 8, 16))
	require.Equal(t, 16.0, Evidence(1, 0, 16))
	require.Equal(t, 16.0, Evidence(math.NaN(), 1, 16))
	require.Equal(t, 16.0, Evidence(math.Inf(1), math.Inf(1), 16))
}

// TestCompete weighs numbers, of which those that divide 12 fit a part and those that
// divide 18 the whole.
func TestCompete(t *testing.T) {
	numbers := []int{9, 6, 5, 4, 3, 2, 18, 1}
	weigh := func(n int, whole bool) (string, bool, error) {
		if whole {
			return string(rune('0' + n)), 18%n == 0, nil
		}
		return "", 12%n == 0, nil
	}
	for _, workers := range []int{1, 2, 5} {
		all, err := Compete(numbers, workers, weigh)
		require.NoError(t, err)
		require.Equal(t, []string{"6", "3", "2", "1"}, all)
	}
	bad := errors.New("bad")
	for _, at := range []bool{false, true} {
		_, err := Compete(numbers, 2, func(n int, whole bool) (string, bool, error) {
			if n == 4 && whole == at {
				return "", true, bad
			}
			return "", true, nil
		})
		require.ErrorIs(t, err, bad)
	}
	all, err := Compete(nil, 0, weigh)
	require.NoError(t, err)
	require.Empty(t, all)
}
