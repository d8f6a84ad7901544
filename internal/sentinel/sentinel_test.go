package sentinel

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestErrorf(t *testing.T) {
	kind, other := errors.New("kind"), errors.New("other")
	err := fmt.Errorf("outside: %w", Errorf(kind, "place %d: %w", 3, io.EOF))
	require.EqualError(t, err, "outside: place 3: EOF")
	require.ErrorIs(t, err, kind)
	require.ErrorIs(t, err, io.EOF)
	require.NotErrorIs(t, err, other)
}
