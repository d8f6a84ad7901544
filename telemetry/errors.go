package telemetry

import "errors"

// ErrLine is of a line of a file of events that is not an event, such as one cut off by
// a crash, or that is longer than 1 MiB, for [errors.Is]: what was read before it is
// right. Errors of the file itself are others.
var ErrLine = errors.New("telemetry: not a line of events")

// cut returns the beginning of a text of somebody else's, for an error.
func cut(text string) string {
	const most = 200
	if len(text) <= most {
		return text
	}
	return text[:most] + "..."
}
