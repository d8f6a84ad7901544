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
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/octavo-fp8/octavo/internal/sentinel"
)

const maxLine = 1 << 20

const lineTooLong = "line is longer than 1 MiB"

// JSONLines returns a sink that writes each event to w as one JSON object on a
// line of its own, in one call of Write. NaN and infinite numbers, which JSON
// lacks, are the strings "NaN", "+Inf" and "-Inf"; all others read back to the
// bit. In names, what is not valid UTF-8 becomes U+FFFD, and what cannot be printed is
// escaped, so that a line can be shown on a terminal.
//
// Once a Write has failed, nothing more is written, since half a line may have
// been, and the sink keeps returning that error. An event that would take a
// line of more than 1 MiB is not written; that is an [ErrLine]. It panics if w is nil.
func JSONLines(w io.Writer) Sink {
	if w == nil {
		panic("telemetry: nil writer")
	}
	return &jsonLines{w: w}
}

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
	text := escapeUnprintable(line.Bytes())
	if len(text) > maxLine {
		return sentinel.Errorf(ErrLine, lineTooLong)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err == nil {
		_, j.err = j.w.Write(text)
	}
	return j.err
}

// escapeUnprintable escapes what cannot be printed in a line of JSON, which can only be
// within strings, or in an error that quotes one. Package json has escaped line breaks,
// quotes and the like. What is not valid UTF-8 becomes U+FFFD. A line break at the end
// stays.
func escapeUnprintable(line []byte) []byte {
	text, ended := bytes.CutSuffix(line, []byte("\n"))
	unprintable := func(r rune) bool { return !unicode.IsPrint(r) }
	if utf8.Valid(text) && !bytes.ContainsFunc(text, unprintable) {
		return line
	}
	var escaped []byte
	for _, r := range string(text) {
		switch {
		case unicode.IsPrint(r):
			escaped = utf8.AppendRune(escaped, r)
		case r > 0xFFFF:
			high, low := utf16.EncodeRune(r)
			escaped = fmt.Appendf(escaped, `\u%04x\u%04x`, high, low)
		default:
			escaped = fmt.Appendf(escaped, `\u%04x`, r)
		}
	}
	if ended {
		escaped = append(escaped, '\n')
	}
	return escaped
}

// ReadJSONLines returns the events that [JSONLines] wrote to what r reads, one
// at a time. Blank lines are skipped and missing fields are zero. A line that is
// anything else, such as one cut off by a crash, ends the sequence with an [ErrLine]
// that names it, and so does an error of r with that error. It panics if r is nil.
func ReadJSONLines(r io.Reader) iter.Seq2[Event, error] {
	if r == nil {
		panic("telemetry: nil reader")
	}
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
				yield(Event{}, brokenLine(n, err.Error()))
				return
			}
			if !yield(e, nil) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			if errors.Is(err, bufio.ErrTooLong) {
				yield(Event{}, brokenLine(n, lineTooLong))
				return
			}
			yield(Event{}, fmt.Errorf("telemetry: line %d: %w", n, err))
		}
	}
}

func brokenLine(n int, why string) error {
	return sentinel.Errorf(ErrLine, "telemetry: line %d: %s", n, escapeUnprintable([]byte(cut(why))))
}

func parseLine(line []byte) (Event, error) {
	// A null would pass for an event that lacks all fields.
	if len(line) == 0 || line[0] != '{' {
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
