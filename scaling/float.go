package scaling

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// Float is a float32 that survives JSON to the bit but for a NaN's payload:
// NaN and infinities, which JSON lacks, are written as strings.
type Float float32

// MarshalJSON implements [json.Marshaler].
func (f Float) MarshalJSON() ([]byte, error) {
	text := strconv.FormatFloat(float64(f), 'g', -1, 32)
	if !isFinite(float32(f)) {
		text = strconv.Quote(text)
	}
	return []byte(text), nil
}

// UnmarshalJSON implements [json.Unmarshaler].
func (f *Float) UnmarshalJSON(data []byte) error {
	text := string(data)
	var quoted string
	if json.Unmarshal(data, &quoted) == nil {
		text = quoted
	}
	v, err := strconv.ParseFloat(text, 32)
	if err != nil {
		return fmt.Errorf("scaling: %s is not a float32", data)
	}
	*f = Float(v)
	return nil
}
