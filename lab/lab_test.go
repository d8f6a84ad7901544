package lab

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/text"
	"github.com/octavo-fp8/octavo/lab/declaration"
	"github.com/octavo-fp8/octavo/lab/report"
)

// TestTextIsMixed: an experiment gets the pieces of the text in the seed's order.
func TestTextIsMixed(t *testing.T) {
	o := Options{Seed: 1, Text: text.New("bytes", bytes.Repeat([]byte("0123456789"), pieceBytes))}
	var got []byte
	declared := func() *declaration.Declaration { return new(declaration.Declaration) }
	e := Experiment{Declaration: declared, Measure: func(_ context.Context, o Options, _ *Steps) (*report.Report, error) {
		got = o.Text.Data
		return new(report.Report), nil
	}}
	_, err := e.Run(t.Context(), o)
	require.NoError(t, err)
	require.Equal(t, inPieces(o.Text.Data, o.Seed), got)
	require.NotEqual(t, o.Text.Data, got)
}
