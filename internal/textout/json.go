package textout

import (
	"bytes"
	"encoding/json"
)

// JSON returns the beginning of a value, without space between its parts; "absent" for none.
func JSON(raw json.RawMessage) string {
	const most = 60
	var compact bytes.Buffer
	if json.Compact(&compact, raw) == nil {
		raw = compact.Bytes()
	}
	if len(raw) == 0 {
		return "absent"
	}
	if len(raw) <= most {
		return string(raw)
	}
	return string(raw[:most]) + "…"
}
