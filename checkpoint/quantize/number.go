package quantize

import (
	"fmt"

	"github.com/octavo-fp8/octavo/internal/jsonfloat"
)

// Number is a float64 in a [Summary]. JSON has no NaN and no infinities: those are the
// strings "NaN", "+Inf" and "-Inf".
type Number float64

// MarshalJSON implements [encoding/json.Marshaler].
func (n Number) MarshalJSON() ([]byte, error) { return jsonfloat.Append(nil, float64(n), 64), nil }

// UnmarshalJSON implements [encoding/json.Unmarshaler].
func (n *Number) UnmarshalJSON(b []byte) error {
	x, err := jsonfloat.Parse(b, 64)
	if err != nil {
		return fmt.Errorf("quantize: %w", err)
	}
	*n = Number(x)
	return nil
}
