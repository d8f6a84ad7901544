package safetensors

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestParserRefusesWhatJSONDoes changes, leaves out and adds bytes of a header, and
// checks that nothing is accepted that package json refuses.
func TestParserRefusesWhatJSONDoes(t *testing.T) {
	header := []byte(`{"__metadata__":{"a\u00e9\n":"b"}, "x":{"dtype":"F32","shape":[0,10],"data_offsets":[0,0]},"y":{"shape":[],"data_offsets":[0,1],"dtype":"U8"}} `)
	accepted := 0
	try := func(text []byte) {
		if _, err := parseHeader(text); err == nil {
			accepted++
			require.True(t, json.Valid(text), "%s", text)
		}
	}
	try(header)
	require.Equal(t, 1, accepted)
	for i := range header {
		try(append(bytes.Clone(header[:i]), header[i+1:]...))
		for _, c := range []byte("\"\\{}[],:0123456789 -+.eEtfnua\n\t\x00\x1f\x7f") {
			changed := bytes.Clone(header)
			changed[i] = c
			try(changed)
			try(append(append(bytes.Clone(header[:i]), c), header[i:]...))
		}
	}
	require.Greater(t, accepted, 100)
}

// manyTensors is a header of n tensors with names as long as those of real ones.
func manyTensors(n int) []Info {
	infos := make([]Info, n)
	for i := range infos {
		infos[i] = Info{Name: fmt.Sprintf("model.layers.%d.mlp.experts.%d.down_proj.weight", i/256, i%256), DType: F8E4M3, Shape: []int{0, 128}}
	}
	return infos
}

// TestHeaderMemory bounds what opening and writing a header takes.
func TestHeaderMemory(t *testing.T) {
	infos := manyTensors(20_000)
	var file bytes.Buffer
	_, err := NewWriter(&file, infos, nil)
	require.NoError(t, err)
	size := uint64(file.Len())
	allocated := func(do func()) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		do()
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	require.Less(t, allocated(func() { _, err = read(file.Bytes()) }), 8*size)
	require.NoError(t, err)
	require.Less(t, allocated(func() { _, err = NewWriter(io.Discard, infos, nil) }), 10*size)
	require.NoError(t, err)
}

func BenchmarkOpenManyTensors(b *testing.B) {
	var file bytes.Buffer
	_, err := NewWriter(&file, manyTensors(100_000), nil)
	require.NoError(b, err)
	b.SetBytes(int64(file.Len()))
	for b.Loop() {
		if _, err := read(file.Bytes()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkWriteManyTensors(b *testing.B) {
	infos := manyTensors(100_000)
	for b.Loop() {
		if _, err := NewWriter(io.Discard, infos, nil); err != nil {
			b.Fatal(err)
		}
	}
}
