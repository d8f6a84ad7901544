package train

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func numbered(n int) []byte {
	text := make([]byte, n)
	for i := range text {
		text[i] = byte(i)
	}
	return text
}

func TestBatchIsWindowsOfTheTrainingPart(t *testing.T) {
	c, err := NewCorpus(numbered(100), 20, 1)
	require.NoError(t, err)
	seen := map[int32]bool{}
	for step := range 2000 {
		tokens, targets, err := c.Batch(step, 3, 8)
		require.NoError(t, err)
		require.Len(t, tokens, 24)
		for i, token := range tokens {
			if token != tokens[i/8*8]+int32(i%8) || targets[i] != token+1 || targets[i] >= 80 {
				t.Fatalf("step %d, element %d: token %d, target %d", step, i, token, targets[i])
			}
		}
		seen[tokens[0]] = true
	}
	require.True(t, seen[0] && seen[71], "both ends are reached")
	require.Len(t, seen, 72)
}

func TestBatchDependsOnSeedStepAndIndexOnly(t *testing.T) {
	c, err := NewCorpus(numbered(200), 0, 1)
	require.NoError(t, err)
	small, _, err := c.Batch(7, 2, 8)
	require.NoError(t, err)
	large, _, err := c.Batch(7, 5, 8)
	require.NoError(t, err)
	require.Equal(t, small, large[:16])

	other, err := NewCorpus(numbered(200), 0, 2)
	require.NoError(t, err)
	reseeded, _, err := other.Batch(7, 5, 8)
	require.NoError(t, err)
	require.NotEqual(t, large, reseeded)
}

func TestHeldOutIsTheTailInOrder(t *testing.T) {
	c, err := NewCorpus(numbered(100), 30, 1)
	require.NoError(t, err)
	require.Equal(t, 2, c.HeldOutBatches(3, 4))
	tokens, targets, err := c.HeldOut(1, 3, 4)
	require.NoError(t, err)
	require.Equal(t, int32(82), tokens[0])
	require.Equal(t, int32(94), targets[11])
	_, _, err = c.HeldOut(2, 3, 4)
	require.ErrorContains(t, err, "held-out batch 2: there are 2")
	require.Zero(t, c.HeldOutBatches(0, 4))

	whole, err := NewCorpus(numbered(10), 0, 1)
	require.NoError(t, err)
	require.Zero(t, whole.HeldOutBatches(1, 1))
	_, _, err = whole.HeldOut(0, 1, 1)
	require.Error(t, err)
}

func TestCorpusErrors(t *testing.T) {
	for _, heldOut := range []int{-1, 1, 99, 100, 101} {
		_, err := NewCorpus(numbered(100), heldOut, 1)
		require.Error(t, err, "%d", heldOut)
	}
	c, err := NewCorpus(bytes.Repeat([]byte("x"), 10), 4, 1)
	require.NoError(t, err)
	_, _, err = c.Batch(0, 1, 5)
	require.NoError(t, err, "one window fits")
	for _, shape := range [][2]int{{0, 1}, {1, 0}, {1, 6}, {-1, 1}} {
		_, _, err := c.Batch(0, shape[0], shape[1])
		require.Error(t, err, "%v", shape)
	}
}
