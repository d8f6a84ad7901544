package lab

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPieces(t *testing.T) {
	data := make([]byte, 10*pieceBytes+7)
	for i := range data {
		data[i] = byte(i / pieceBytes)
	}
	mixed := inPieces(data, 1)
	require.Len(t, mixed, len(data))
	require.NotEqual(t, data, mixed)
	require.Equal(t, mixed, inPieces(data, 1))
	require.NotEqual(t, mixed, inPieces(data, 2))
	for i := range byte(11) {
		require.Equal(t, bytes.Count(data, []byte{i}), bytes.Count(mixed, []byte{i}), "no byte is lost")
	}
	changes := len(slices.Compact(slices.Clone(mixed))) - 1
	require.Equal(t, 10, changes, "pieces stay whole")
	require.Empty(t, inPieces(nil, 1))
	require.Equal(t, []byte("word"), inPieces([]byte("word"), 1))
}
