package telemetry

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"
)

const maxLine = 1 << 20

var errLineTooLong = errors.New("line is longer than 1 MiB")

// JSONLines returns a sink that writes each event to w as one JSON object on a
// line of its own, in one call of Write. NaN and infinite numbers, which JSON
// lacks, are the strings "NaN", "+Inf" and "-Inf"; all others read back to the
// bit. In names, what is not valid UTF-8 becomes U+FFFD.
//
// Once a Write has failed, nothing more is written, since half a line may have
// been, and the sink keeps returning that error. An event that would take a
// line of more than 1 MiB is not written; that is an error of its own.
func JSONLines(w io.Writer) Sink { return &jsonLines{w: w} }

type jsonLines struct {
	mu  sync.Mutex
	w   io.Writer
	err error
}

func (j *jsonLines) Event(e Event) error {
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(jsonOfEvent(&e)); err != nil {
		return err
	}
	if line.Len() > maxLine {
		return errLineTooLong
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err == nil {
		_, j.err = j.w.Write(line.Bytes())
	}
	return j.err
}

// ReadJSONLines returns the events that [JSONLines] wrote to what r reads, one
// at a time. Blank lines are skipped and missing fields are zero. A line that is
// anything else, such as one cut off by a crash, or an error of r ends the
// sequence with an error that names the line.
func ReadJSONLines(r io.Reader) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		lines := bufio.NewScanner(r)
		lines.Buffer(nil, maxLine+1)
		n := 1
		for ; lines.Scan(); n++ {
			line := bytes.TrimSpace(lines.Bytes())
			if len(line) == 0 {
				continue
			}
			e, err := parseLine(line)
			if err != nil {
				yield(Event{}, lineError(n, err))
				return
			}
			if !yield(e, nil) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			if errors.Is(err, bufio.ErrTooLong) {
				err = errLineTooLong
			}
			yield(Event{}, lineError(n, err))
		}
	}
}

func lineError(n int, err error) error { return fmt.Errorf("telemetry: line %d: %w", n, err) }

func parseLine(line []byte) (Event, error) {
	// A null would pass for an event that lacks all fields.
	if line[0] != '{' {
		return Event{}, errors.New("not a JSON object")
	}
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	var j jsonEvent
	if err := decoder.Decode(&j); err != nil {
		return Event{}, err
	}
	if decoder.InputOffset() != int64(len(line)) {
		return Event{}, errors.New("more than one JSON value")
	}
	return j.event()
}
