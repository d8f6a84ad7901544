package scaling

import (
	"fmt"

	"github.com/octavo-fp8/octavo/internal/jsonfloat"
)

// Float is a float32 that survives JSON to the bit but for a NaN's payload:
// NaN and infinities, which JSON lacks, are written as strings.
type Float float32

// MarshalJSON implements [json.Marshaler].
func (f Float) MarshalJSON() ([]byte, error) { return jsonfloat.Append(nil, float64(f), 32), nil }

// UnmarshalJSON implements [json.Unmarshaler].
func (f *Float) UnmarshalJSON(data []byte) error {
	x, err := jsonfloat.Parse(data, 32)
	if err != nil {
		return fmt.Errorf("scaling: %w", err)
	}
	*f = Float(x)
	return nil
}
