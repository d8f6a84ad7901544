package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/oracle/power"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// client is the other side of a server.
type client struct {
	t    *testing.T
	in   *io.PipeWriter
	out  *io.PipeReader
	done chan error
	id   int64
}

// start starts a server and reads its greeting.
func start(t *testing.T, ctx context.Context) *client {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	c := &client{t: t, in: inW, out: outR, done: make(chan error, 1)}
	go func() {
		s := Server{In: inR, Out: outW, Version: "v1", Message: func(err error) string { return "said: " + err.Error() }}
		_, err := s.Run(ctx)
		outW.Close()
		inR.Close()
		c.done <- err
	}()
	t.Cleanup(func() { inW.Close(); outR.Close() })
	var g greeting
	f, err := readFrame(outR)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(f.header, &g))
	require.Equal(t, greeting{Protocol, "v1", slices.Sorted(maps.Keys(operations))}, g)
	return c
}

// reply is an answer with what is in its frame.
type reply struct {
	ID     *int64
	Result map[string]any
	Error  *failure
	file   *safetensors.File
}

// send writes a frame.
func (c *client) send(header any, arrays ...safetensors.Tensor) {
	c.t.Helper()
	data, err := pack(arrays)
	require.NoError(c.t, err)
	require.NoError(c.t, writeFrame(c.in, header, data))
}

// receive reads an answer.
func (c *client) receive() (r reply) {
	c.t.Helper()
	f, err := readFrame(c.out)
	require.NoError(c.t, err)
	require.NoError(c.t, json.Unmarshal(f.header, &r), "%s", f.header)
	if len(f.data) > 0 {
		r.file, err = safetensors.NewReader(bytes.NewReader(f.data), int64(len(f.data)))
		require.NoError(c.t, err)
	}
	return r
}

// ask sends a request and reads the answer.
func (c *client) ask(operation string, options map[string]any, arrays ...safetensors.Tensor) reply {
	c.t.Helper()
	c.id++
	c.send(map[string]any{"protocol": Protocol, "id": c.id, "operation": operation, "options": options}, arrays...)
	r := c.receive()
	require.Equal(c.t, c.id, *r.ID)
	return r
}

// get is ask that succeeds.
func (c *client) get(operation string, options map[string]any, arrays ...safetensors.Tensor) reply {
	c.t.Helper()
	r := c.ask(operation, options, arrays...)
	require.Nil(c.t, r.Error, "%v", r.Error)
	return r
}

// refused is ask that fails for what was asked.
func (c *client) refused(text, operation string, options map[string]any, arrays ...safetensors.Tensor) {
	c.t.Helper()
	r := c.ask(operation, options, arrays...)
	require.NotNil(c.t, r.Error)
	require.Equal(c.t, kindInput, r.Error.Kind)
	require.True(c.t, strings.HasPrefix(r.Error.Message, "said: "), r.Error.Message)
	require.Contains(c.t, r.Error.Message, text)
	require.Nil(c.t, r.Result)
	require.Nil(c.t, r.file)
}

func (r reply) floats(t *testing.T, name string) []float32 {
	t.Helper()
	x, err := safetensors.Elements[float32](r.file, name)
	require.NoError(t, err)
	return x
}

func (r reply) bytes(t *testing.T, name string) []byte {
	t.Helper()
	b, err := r.file.Bytes(name)
	require.NoError(t, err)
	return b
}

// operand returns the arrays of an operand.
func operand(t *tensor.Tensor) []safetensors.Tensor {
	rows, cols := t.Grid()
	return []safetensors.Tensor{safetensors.New(t.Name, safetensors.U8, t.Shape, t.Codes), floatArray(t.Name+"_scales", []int{rows, cols}, t.Scales)}
}

// product returns the arrays of a product and its exact C.
func exactProduct(t *testing.T, m, n, k int) ([]safetensors.Tensor, []float32) {
	a, b := power.Operands(m, n, k, fp8.E4M3, tensor.Block{}, 1)
	c := make([]float32, m*n)
	require.NoError(t, oracle.Exact(t.Context(), c, a, b, oracle.Options{}))
	return append(operand(a), operand(b)...), c
}

// TestGoesOn sends frames that are no requests, each of which is answered, and then one
// that is.
func TestGoesOn(t *testing.T) {
	c := start(t, t.Context())
	for text, header := range map[string]any{
		"protocol 2 is not spoken here: this is octavo v1, which speaks 1": request{Protocol: 2, ID: 9},
		"protocol 0":             map[string]any{},
		"unknown field \"tool\"": map[string]any{"tool": 1},
		"cannot unmarshal array": []int{1},
		"there is no operation":  request{Protocol: 1, Operation: "dance"},
		"options of encode":      map[string]any{"protocol": 1, "operation": "encode", "options": []int{1}},
	} {
		c.send(header)
		r := c.receive()
		require.NotNil(t, r.Error)
		require.Equal(t, kindInput, r.Error.Kind)
		require.Contains(t, r.Error.Message, text)
	}
	for _, header := range []string{"", "{", `{"protocol":1,"operation":"generate"}{}`, "\xff"} {
		f := append([]byte(magic), byte(len(header)), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
		_, err := c.in.Write(append(f, header...))
		require.NoError(t, err)
		require.Equal(t, kindInput, c.receive().Error.Kind)
	}
	require.NoError(t, writeFrame(c.in, request{Protocol: 1, Operation: "encode"}, []byte("no safetensors file")))
	require.Contains(t, c.receive().Error.Message, "safetensors: ")

	operations["panic"] = func(*call) (any, []safetensors.Tensor, error) { panic("of a test") }
	defer delete(operations, "panic")
	r := c.ask("panic", nil)
	require.Equal(t, kindInternal, r.Error.Kind)
	require.Contains(t, r.Error.Message, "of a test")
	require.Contains(t, r.Error.Message, "serve_test.go")

	c.get("generate", map[string]any{"rows": 1, "cols": 1})
	require.NoError(t, c.in.Close())
	require.NoError(t, <-c.done)
}

// TestQueue sends requests before the one before is answered.
func TestQueue(t *testing.T) {
	c := start(t, t.Context())
	go func() {
		for i := range 50 {
			_ = writeFrame(c.in, map[string]any{"protocol": 1, "id": i, "operation": "generate", "options": map[string]any{"rows": i, "cols": 1}}, nil)
		}
	}()
	for i := range 50 {
		r := c.receive()
		require.EqualValues(t, i, *r.ID)
		require.Len(t, r.floats(t, "values"), i)
	}
}

// TestNoFrame ends the input everywhere in a frame, and breaks its prefix.
func TestNoFrame(t *testing.T) {
	var whole bytes.Buffer
	require.NoError(t, writeFrame(&whole, request{Protocol: 1, ID: 1, Operation: "generate"}, noArrays))
	broken := [][]byte{[]byte("GET / HTTP/1.1\r\n\r\n")}
	for n := 1; n < whole.Len(); n++ {
		broken = append(broken, whole.Bytes()[:n])
	}
	for _, at := range []int{7, 15} { // a header, or data, of too many bytes
		b := bytes.Clone(whole.Bytes())
		b[at] = 0x7f
		broken = append(broken, b)
	}
	for _, b := range broken {
		c := start(t, t.Context())
		go func() {
			_, _ = c.in.Write(b)
			c.in.Close()
		}()
		r := c.receive()
		require.Nil(t, r.ID)
		require.Equal(t, kindFrame, r.Error.Kind, "%q", b)
		switch {
		case bytes.HasPrefix(b, []byte("GET")):
			require.Contains(t, r.Error.Message, `begins with "GET "`)
		case len(b) < prefixSize:
			require.Contains(t, r.Error.Message, "of the 16 bytes that begin one")
		case b[7] == 0x7f:
			require.Contains(t, r.Error.Message, "want 1048576 at most")
		case b[15] == 0x7f:
			require.Contains(t, r.Error.Message, "not fit in memory")
		default:
			require.Regexp(t, "ends after [0-9]+ of the [0-9]+ bytes of its (header|data)", r.Error.Message)
		}
		require.ErrorIs(t, <-c.done, errFrame)
	}
	c := start(t, t.Context())
	require.NoError(t, c.in.Close())
	require.NoError(t, <-c.done)
}

// TestEndOfInput has a request be given up when the input ends, or the context.
func TestEndOfInput(t *testing.T) {
	begun := make(chan bool)
	operations["wait"] = func(c *call) (any, []safetensors.Tensor, error) {
		begun <- true
		<-c.ctx.Done()
		return nil, nil, context.Cause(c.ctx)
	}
	defer delete(operations, "wait")
	ctx, cancel := context.WithCancelCause(t.Context())
	c := start(t, ctx)
	c.send(request{Protocol: 1, Operation: "wait"})
	<-begun
	require.NoError(t, c.in.Close())
	require.NoError(t, <-c.done)

	c = start(t, ctx) // what follows a request is no frame
	c.send(request{Protocol: 1, Operation: "wait"})
	<-begun
	_, err := c.in.Write([]byte("GET / HTTP/1.1\r\n"))
	require.NoError(t, err)
	require.Equal(t, kindFrame, c.receive().Error.Kind)
	require.ErrorIs(t, <-c.done, errFrame)

	c = start(t, ctx)
	c.send(request{Protocol: 1, Operation: "wait"})
	<-begun
	cause := errors.New("of a signal")
	cancel(cause)
	require.ErrorIs(t, <-c.done, cause)
}

// TestClosedOutput ends where nobody reads.
func TestClosedOutput(t *testing.T) {
	c := start(t, t.Context())
	require.NoError(t, c.out.Close())
	c.send(request{Protocol: 1})
	require.ErrorIs(t, <-c.done, io.ErrClosedPipe)
}

// TestProgress wants frames of progress before the answer where they are asked for, and
// none elsewhere.
func TestProgress(t *testing.T) {
	operations["work"] = func(c *call) (any, []safetensors.Tensor, error) {
		for i := range int64(1000) {
			c.Progress("work", i, 1000)
		}
		return nothing, nil, nil
	}
	defer delete(operations, "work")
	c := start(t, t.Context())
	c.send(request{Protocol: 1, ID: 4, Operation: "work"})
	require.NotNil(t, c.receive().Result)
	c.send(request{Protocol: 1, ID: 5, Operation: "work", Progress: true})
	heard := 0
	for ; ; heard++ {
		f, err := readFrame(c.out)
		require.NoError(t, err)
		if !strings.Contains(string(f.header), "progress") {
			require.JSONEq(t, `{"id": 5, "result": {}}`, string(f.header))
			break
		}
		require.Regexp(t, `^{"id":5,"progress":{"done":[0-9]+,"operation":"work","total":1000}}$`, string(f.header))
	}
	require.GreaterOrEqual(t, heard, 1)
	require.Less(t, heard, 500)
}

// FuzzFrames demands that what is read as a frame is one, whatever comes in.
func FuzzFrames(f *testing.F) {
	var whole bytes.Buffer
	require.NoError(f, writeFrame(&whole, request{Protocol: 1}, noArrays))
	f.Add(whole.Bytes())
	f.Add(append(whole.Bytes(), whole.Bytes()...))
	f.Fuzz(func(t *testing.T, input []byte) {
		r := bytes.NewReader(input)
		for {
			at := len(input) - r.Len()
			f, err := readFrame(r)
			if err != nil {
				require.True(t, errors.Is(err, errFrame) || errors.Is(err, io.EOF) && at == len(input), "%v", err)
				return
			}
			n := prefixSize + len(f.header) + len(f.data)
			require.Equal(t, at+n, len(input)-r.Len())
			require.Equal(t, input[at+prefixSize:at+n], append(f.header, f.data...))
		}
	})
}

// FuzzAnswer demands of every frame that it is answered by one, with a result or an error.
func FuzzAnswer(f *testing.F) {
	ask := func(operation string, options map[string]any, arrays ...safetensors.Tensor) {
		header, err := json.Marshal(map[string]any{"protocol": 1, "id": 1, "operation": operation, "options": options})
		require.NoError(f, err)
		data, err := pack(arrays)
		require.NoError(f, err)
		f.Add(header, data)
	}
	a, b := power.Operands(2, 3, 16, fp8.E4M3, tensor.Block{}, 1)
	both := append(operand(a), operand(b)...)
	formats := map[string]any{"a_format": "E4M3", "b_format": "E4M3"}
	ask("check", formats, append(both, floatArray("c", []int{2, 3}, make([]float32, 6)))...)
	ask("multiply", formats, both...)
	ask("audit", map[string]any{"a_format": "E4M3", "b_format": "E4M3", "alone": true, "defaults": "allclose"}, both...)
	p, out, lse := attended(f, 40)
	asked := append(attentionArrays(p), floatArray("out", []int{4, 3, 8}, out), floatArray("lse", []int{4, 3}, lse))
	ask("check_attention", map[string]any{"causal": true, "window": attention.Window{Left: 3}, "sums": "hopper-wgmma", "page": true}, asked...)
	ask("check_attention", map[string]any{"kernel": "fa4", "value_dim": 8, "q_block": 3}, asked[:len(asked)-1]...)
	ask("encode", map[string]any{"format": "E4M3"}, floatArray("values", []int{1}, []float32{1}))
	ask("decode", nil, safetensors.New("codes", safetensors.F8E5M2, []int{1}, []byte{1}))
	ask("quantize", map[string]any{"recipe": "mx-floor", "block": "1x32"}, floatArray("values", []int{1, 2}, []float32{1, 2}))
	ask("check_quantizer", map[string]any{"recipe": "mx-floor", "page": true}, quantizerArrays(f)...)
	ask("operands", map[string]any{"m": 2, "n": 2, "k": 8, "block": "1x4"})
	ask("cancelling", map[string]any{"m": 2, "n": 2, "k": 8})
	ask("generate", map[string]any{"rows": 2, "cols": 8, "pattern": "ties"})
	f.Fuzz(func(t *testing.T, header, data []byte) {
		var out bytes.Buffer
		s := Server{Out: &out, most: 1 << 14}
		require.NoError(t, s.answer(t.Context(), frame{header, data}))
		for { // progress
			got, err := readFrame(&out)
			require.NoError(t, err)
			var a struct {
				reply
				Progress any
			}
			require.NoError(t, json.Unmarshal(got.header, &a))
			if a.Progress != nil {
				continue
			}
			require.True(t, (a.Error == nil) != (a.Result == nil))
			if a.Error != nil {
				require.Equal(t, kindInput, a.Error.Kind, a.Error.Message)
			}
			require.Zero(t, out.Len())
			return
		}
	})
}
