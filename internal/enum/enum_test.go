package enum

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

type colour uint8

var errColour = errors.New("colours")

var colours = Enum[colour]{Type: "Colour", What: "colour", Names: []string{"red", "green"}, Err: errColour}

func TestText(t *testing.T) {
	require.Equal(t, "green", colours.String(1))
	require.Equal(t, "Colour(2)", colours.String(2))
	require.NoError(t, colours.Check(0))
	require.EqualError(t, colours.Check(7), "colours: unknown colour 7: want one of red, green")
	require.ErrorIs(t, colours.Check(7), errColour)

	text, err := colours.MarshalText(1)
	require.NoError(t, err)
	require.Equal(t, "green", string(text))
	_, err = colours.MarshalText(2)
	require.ErrorIs(t, err, errColour)

	c := colour(1)
	require.NoError(t, colours.UnmarshalText(&c, []byte("RED")))
	require.Equal(t, colour(0), c)
	require.EqualError(t, colours.UnmarshalText(&c, []byte("blue\n")), `colours: unknown colour "blue\n": want one of red, green`)
	require.Equal(t, colour(0), c)
}

func TestPrefix(t *testing.T) {
	prefixed := colours
	prefixed.Prefix = "paint"
	require.EqualError(t, prefixed.Check(7), "paint: unknown colour 7: want one of red, green")
	require.ErrorIs(t, prefixed.Check(7), errColour)
	prefixed.Err = nil
	require.EqualError(t, prefixed.Check(7), "paint: unknown colour 7: want one of red, green")
}
