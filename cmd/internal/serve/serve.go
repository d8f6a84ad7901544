package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/octavo-fp8/octavo/cmd/internal/vocabulary"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/safetensors"
)

// Protocol is the version of what is spoken.
const Protocol = 1

// Server answers requests.
type Server struct {
	In      io.Reader
	Out     io.Writer
	Version string             // of octavo
	Message func(error) string // is what an error says to the user; nil: its own text

	most int64 // bytes of an array that is made; 0: what fits in memory
}

// Kinds of errors.
const (
	kindInput    = "input"
	kindInternal = "internal"
	kindFrame    = "frame"
)

type greeting struct {
	Protocol   int      `json:"protocol"`
	Version    string   `json:"version"`
	Operations []string `json:"operations"`
}

type request struct {
	Protocol  int             `json:"protocol"`
	ID        int64           `json:"id"`
	Operation string          `json:"operation"`
	Progress  bool            `json:"progress"`
	Options   json.RawMessage `json:"options"`
}

type answer struct {
	ID     *int64   `json:"id,omitempty"`
	Result any      `json:"result,omitempty"`
	Error  *failure `json:"error,omitempty"`
}

type failure struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
}

// Run answers requests until the input ends, and returns how many it has answered. It
// returns an error if the input is no frames or cannot be read, if an answer cannot be
// written, and when ctx ends.
func (s *Server) Run(ctx context.Context) (answered int, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if err := writeFrame(s.Out, greeting{Protocol, s.Version, slices.Sorted(maps.Keys(operations))}, nil); err != nil {
		return 0, err
	}
	frames := s.read(ctx, cancel)
	for {
		select {
		case f := <-frames:
			err := s.answer(ctx, f)
			if ctx.Err() != nil {
				return answered, s.end(ctx)
			}
			if err != nil {
				return answered, err
			}
			answered++
		case <-ctx.Done():
			return answered, s.end(ctx)
		}
	}
}

// errEnd is the cause of a context that ends because the input does.
var errEnd = errors.New("the input has ended")

// ended returns why the context has, or nil where the input has ended.
func ended(ctx context.Context) error {
	if cause := context.Cause(ctx); !errors.Is(cause, errEnd) {
		return cause
	}
	return nil
}

// end says to the other side that what it sent is no frame, if that is why ctx has ended.
func (s *Server) end(ctx context.Context) error {
	err := ended(ctx)
	if errors.Is(err, errFrame) {
		_ = writeFrame(s.Out, answer{Error: &failure{kindFrame, s.message(err)}}, nil) // or nobody is there
	}
	return err
}

// read reads frames in the background, one ahead, and ends the context after the last.
func (s *Server) read(ctx context.Context, cancel context.CancelCauseFunc) <-chan frame {
	frames := make(chan frame)
	go func() {
		for {
			f, err := readFrame(s.In)
			switch {
			case errors.Is(err, io.EOF):
				err = errEnd
			case err != nil && !errors.Is(err, errFrame):
				err = fmt.Errorf("reading standard input: %w", err)
			}
			if err != nil {
				cancel(err)
				return
			}
			select {
			case frames <- f:
			case <-ctx.Done():
				return
			}
		}
	}()
	return frames
}

// answer does what a frame asks for. The error is that of writing.
func (s *Server) answer(ctx context.Context, f frame) error {
	c := call{ctx: ctx, server: s}
	result, arrays, err := c.serve(f)
	if ctx.Err() != nil {
		return nil
	}
	a := answer{ID: c.request.id(), Result: result}
	var data []byte
	if err == nil {
		data, err = pack(arrays)
	}
	if err != nil {
		a.Result, a.Error = nil, &failure{kindInput, s.message(err)}
		if errors.As(err, &panicked{}) {
			a.Error.Kind = kindInternal
		}
	}
	c.out.Lock()
	defer c.out.Unlock()
	return writeFrame(s.Out, a, data)
}

func (r *request) id() *int64 { return &r.ID }

func (s *Server) message(err error) string {
	if s.Message != nil {
		return optionsIn(s.Message(err))
	}
	return optionsIn(err.Error())
}

// flags are those that commands have for options.
var flags = regexp.MustCompile(`(^|[\s">])--[a-z][a-z0-9-]*`)

// optionsIn returns a text with the names of options for those of flags: scale_order for
// --scale-order.
func optionsIn(text string) string {
	return flags.ReplaceAllStringFunc(text, func(flag string) string {
		return strings.ReplaceAll(strings.Replace(flag, "--", "", 1), "-", "_")
	})
}

// pack returns a safetensors file of arrays.
func pack(arrays []safetensors.Tensor) ([]byte, error) {
	if len(arrays) == 0 {
		return nil, nil
	}
	return safetensors.Encode(arrays, nil)
}

// panicked is the error of an operation that panicked.
type panicked struct {
	value any
	stack []byte
}

func (p panicked) Error() string { return fmt.Sprintf("octavo has a fault: %v\n%s", p.value, p.stack) }

// call is a request that is being answered.
type call struct {
	ctx     context.Context
	server  *Server
	request request
	file    *safetensors.File // of its arrays

	out      sync.Mutex
	reported time.Time
}

// serve does what a frame asks for.
func (c *call) serve(f frame) (result any, arrays []safetensors.Tensor, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicked{p, debug.Stack()}
		}
	}()
	if err := strictly(f.header, &c.request); err != nil {
		return nil, nil, fmt.Errorf("the header of a request: %w", err)
	}
	r := &c.request
	if r.Protocol != Protocol {
		return nil, nil, fmt.Errorf("protocol %d is not spoken here: this is octavo %s, which speaks %d", r.Protocol, c.server.Version, Protocol)
	}
	operate, ok := operations[r.Operation]
	if !ok {
		return nil, nil, fmt.Errorf("there is no operation %q: octavo %s has %v", r.Operation, c.server.Version, slices.Sorted(maps.Keys(operations)))
	}
	if len(f.data) == 0 {
		f.data = noArrays
	}
	if c.file, err = safetensors.NewReader(bytes.NewReader(f.data), int64(len(f.data))); err != nil {
		return nil, nil, err
	}
	return operate(c)
}

// noArrays is a safetensors file without tensors.
var noArrays = []byte("\x02\x00\x00\x00\x00\x00\x00\x00{}")

// strictly reads JSON, all of whose keys must be known.
func strictly(text []byte, value any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err := d.Decode(value)
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) && wrong.Field != "" {
		return fmt.Errorf("%s is %s: want %s", wrong.Field[strings.LastIndexByte(wrong.Field, '.')+1:], strings.TrimPrefix(wrong.Value, "number "), kindOf(wrong.Type))
	}
	if err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more behind the JSON object")
	}
	return nil
}

// kindOf returns what a value in JSON has to be that becomes one of a type.
func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Uint64:
		return "a whole number that is not negative"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list"
	case reflect.String, reflect.Pointer, reflect.Uint8:
		return "a text"
	}
	return "another type"
}

// read reads the options of an operation, and refuses arrays of other names.
func (c *call) read(options any, names ...string) error {
	if len(c.request.Options) > 0 {
		if err := strictly(c.request.Options, options); err != nil {
			return fmt.Errorf("options of %s: %w%s", c.request.Operation, err, c.formatMeant(err))
		}
	}
	for _, t := range c.file.Tensors() {
		if !slices.Contains(names, t.Name) {
			return fmt.Errorf("%s takes no tensor %q", c.request.Operation, t.Name)
		}
	}
	return nil
}

// formatMeant says what may have been meant by an unknown format.
func (c *call) formatMeant(err error) string {
	var o struct{ Format string }
	if !errors.Is(err, fp8.ErrFormat) || json.Unmarshal(c.request.Options, &o) != nil {
		return ""
	}
	var known []string
	for _, f := range fp8.Formats() {
		known = append(known, strings.ToLower(f.String()))
	}
	return vocabulary.Hint(o.Format, known)
}

// has reports whether the request brings an array.
func (c *call) has(name string) bool {
	_, ok := c.file.Info(name)
	return ok
}

// Progress tells the other side, unless it did so a moment ago.
func (c *call) Progress(op string, done, total int64) {
	c.out.Lock()
	defer c.out.Unlock()
	if !c.request.Progress || time.Since(c.reported) < time.Second/10 {
		return
	}
	c.reported = time.Now()
	_ = writeFrame(c.server.Out, map[string]any{ // where nobody reads, the answer is an error
		"id": c.request.ID, "progress": map[string]any{"operation": op, "done": done, "total": total},
	}, nil)
}
