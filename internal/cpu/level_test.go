package cpu

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLevelNames(t *testing.T) {
	for _, l := range []Level{Generic, NEON, AVX2, AVX512, AVX512BF16, AMX} {
		got, err := ParseLevel(l.String())
		require.NoError(t, err)
		require.Equal(t, l, got)
	}
	_, err := ParseLevel("sse9")
	require.EqualError(t, err, `unknown level "sse9": want one of generic, neon, avx2, avx512, avx512bf16, amx`)
	require.Equal(t, "Level(77)", Level(77).String())
}

func TestLevelsRise(t *testing.T) {
	levels := Levels()
	require.Equal(t, Generic, levels[0])
	require.True(t, slices.IsSorted(levels))
	if pure {
		require.Len(t, levels, 1)
	}
}

func TestInitial(t *testing.T) {
	highest, err := initial("")
	require.NoError(t, err)
	require.Equal(t, Levels()[len(Levels())-1], highest)
	for _, l := range Levels() {
		got, err := initial(l.String())
		require.NoError(t, err)
		require.Equal(t, l, got)
	}
	_, err = initial("fast")
	require.ErrorContains(t, err, `unknown level "fast"`)
	for _, l := range []Level{NEON, AVX2, AVX512, AVX512BF16, AMX} {
		if !slices.Contains(Levels(), l) {
			_, err = initial(l.String())
			require.ErrorContains(t, err, "this machine has no level "+l.String())
		}
	}
}

func TestForce(t *testing.T) {
	before := Current()
	for _, l := range Levels() {
		restore, err := Force(l)
		require.NoError(t, err)
		require.Equal(t, l, Current())
		restore()
		require.Equal(t, before, Current())
	}
	_, err := Force(Level(77))
	require.Error(t, err)
	require.Equal(t, before, Current())
}

// TestCheck has a process that was started with a level that there is not.
func TestCheck(t *testing.T) {
	require.NoError(t, Check())
	highest, err := initial("")
	require.NoError(t, err)
	got, err := initial("sse9")
	require.ErrorIs(t, err, ErrLevel)
	require.Equal(t, highest, got)
	for _, l := range []Level{NEON, AVX2, AVX512, AVX512BF16, AMX} {
		if !slices.Contains(Levels(), l) {
			got, err = initial(l.String())
			require.ErrorIs(t, err, ErrLevel)
			require.Equal(t, highest, got)
		}
	}
}
