package comparison

import (
	"encoding/json"
	"io"
	"strings"
	"time"
)

// LiveState is a run that goes on, for who reads it from a file: what result.json and curves.csv
// would be if it had ended after the last step.
type LiveState struct {
	Written time.Time       `json:"written"`
	Result  json.RawMessage `json:"result"`
	Curves  string          `json:"curves"`
}

// WriteLive writes the result, of a run that goes on, as a [LiveState].
func (r *Result) WriteLive(w io.Writer) error {
	var result, curves strings.Builder
	if err := r.WriteJSON(&result); err != nil {
		return err
	}
	if err := r.WriteCurves(&curves); err != nil {
		return err
	}
	return json.NewEncoder(w).Encode(LiveState{r.Live.Written, json.RawMessage(result.String()), curves.String()})
}
