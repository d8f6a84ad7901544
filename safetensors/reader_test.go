package safetensors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/testutil"
)

// assemble returns a file with the given header text and n bytes of data that
// count from 0.
func assemble(header string, n int) []byte {
	file := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	file = append(file, header...)
	for i := range n {
		file = append(file, byte(i))
	}
	return file
}

func read(file []byte) (*File, error) {
	return NewReader(bytes.NewReader(file), int64(len(file)))
}

// validFiles are accepted; each is also a seed of FuzzReader.
var validFiles = map[string][]byte{
	"nothing":        assemble(`{}`, 0),
	"spaces":         assemble(`{}      `, 0),
	"inner space":    assemble("{\n\t\"a\" : {\"dtype\":\"U8\", \"shape\":[ 3 ],\r\n\"data_offsets\":[0,3]} }", 3),
	"metadata":       assemble(`{"__metadata__":{"a":"b","":""}}`, 0),
	"empty metadata": assemble(`{"__metadata__":{}}`, 0),
	"scalar":         assemble(`{"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}`, 4),
	"empty tensor":   assemble(`{"a":{"dtype":"F64","shape":[3,0,2],"data_offsets":[0,0]}}`, 0),
	"matrix":         assemble(`{"a":{"dtype":"F16","shape":[2,3],"data_offsets":[0,12]}}`, 12),
	"FP8 and scales": assemble(`{"w":{"dtype":"F8_E4M3","shape":[2,32],"data_offsets":[0,64]},`+
		`"s":{"dtype":"F8_E8M0","shape":[2,1],"data_offsets":[64,66]}}`, 66),
	"narrow": assemble(`{"w":{"dtype":"F4","shape":[3,6],"data_offsets":[0,9]},"v":{"dtype":"F6_E2M3","shape":[2,2],"data_offsets":[9,12]},`+
		`"u":{"dtype":"F6_E3M2","shape":[1,8],"data_offsets":[12,18]},"none":{"dtype":"F4","shape":[0,3],"data_offsets":[18,18]}}`, 18),
	"complex":       assemble(`{"a":{"dtype":"C64","shape":[2],"data_offsets":[0,16]}}`, 16),
	"any key order": assemble(`{"a":{"data_offsets":[0,4],"shape":[2],"dtype":"I16"}}`, 4),
	"any data order": assemble(`{"c":{"dtype":"U8","shape":[2],"data_offsets":[2,4]},`+
		`"b":{"dtype":"U8","shape":[0],"data_offsets":[2,2]},"a":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]}}`, 4),
	"escaped names":    assemble(`{"\u00e9\"\n<":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, 1),
	"surrogate pair":   assemble(`{"\ud83d\ude00\\ud800":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, 1),
	"U+FFFD":           assemble(`{"�\ufffd":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, 1),
	"nameless":         assemble(`{"":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, 1),
	"unaligned header": assemble(`{"a":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}}   `, 8),
}

func TestReaderAcceptsValidFiles(t *testing.T) {
	for name, file := range validFiles {
		_, err := read(file)
		require.NoError(t, err, name)
	}
}

// malformedFiles are refused with an error that mentions every string of want.
var malformedFiles = []struct {
	name string
	file []byte
	want []string
}{
	{"no bytes", nil, []string{"0 bytes", "header length"}},
	{"short prefix", []byte{2, 0, 0}, []string{"3 bytes", "header length"}},
	{"header over limit", append(binary.LittleEndian.AppendUint64(nil, 100_000_001), "{}"...), []string{"100000001", "limit of 100000000"}},
	{"header length of all ones", append(binary.LittleEndian.AppendUint64(nil, math.MaxUint64), "{}"...), []string{"18446744073709551615", "limit"}},
	{"header past end", append(binary.LittleEndian.AppendUint64(nil, 3), "{}"...), []string{"header length 3", "past the end", "2 bytes"}},
	{"empty header", assemble(``, 0), []string{"not a JSON object", `""`}},
	{"not JSON", assemble(`hello`, 0), []string{"not a JSON object", "hello"}},
	{"array", assemble(`[]`, 0), []string{"not a JSON object", "[]"}},
	{"null", assemble(`null`, 0), []string{"not a JSON object", "null"}},
	{"leading space", assemble(` {}`, 0), []string{"not a JSON object", `" {}"`}},
	{"cut off", assemble(`{"a":`, 0), []string{"not JSON", "byte 5", "unexpected EOF"}},
	{"cut off in string", assemble(`{"a`, 0), []string{"not JSON", "unexpected EOF"}},
	{"cut off after member", assemble(`{"__metadata__":{}`, 0), []string{"not JSON", "unexpected EOF"}},
	{"cut off in shape", assemble(`{"a":{"shape":[1`, 0), []string{`tensor "a"`, "not JSON", "unexpected EOF"}},
	{"cut off before dim", assemble(`{"a":{"shape":[1,`, 0), []string{`tensor "a"`, "not JSON", "unexpected EOF"}},
	{"shape with colon", assemble(`{"a":{"shape":[1:2]}}`, 0), []string{`tensor "a"`, "not JSON", "':'"}},
	{"number as key", assemble(`{1:2}`, 0), []string{"not JSON", "'1'"}},
	{"comma too many", assemble(`{"__metadata__":{},}`, 0), []string{"not JSON", "'}'"}},
	{"comma missing", assemble(`{"__metadata__":{} "a":{}}`, 0), []string{"not JSON", `'"'`}},
	{"colon missing", assemble(`{"a" {}}`, 0), []string{"not JSON", "'{'"}},
	{"wrong bracket", assemble(`{]`, 0), []string{"not JSON", "']'"}},
	{"control character", assemble("{\"a\nb\":{}}", 0), []string{"not JSON", `'\n'`}},
	{"not UTF-8", assemble("{\"a\xff\":{}}", 0), []string{"not UTF-8"}},
	{"high surrogate alone", assemble(`{"a\ud800":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, 1), []string{`\ud800 at header byte 3`, "half of a surrogate pair"}},
	{"low surrogate alone", assemble(`{"__metadata__":{"k":"\\\uDC00"}}`, 0), []string{`\uDC00 at header byte 24`, "half of a surrogate pair"}},
	{"two high surrogates", assemble(`{"\ud800\ud800\udc00":7}`, 0), []string{`\ud800 at header byte 2`, "half of a surrogate pair"}},
	{"surrogate cut off", assemble(`{"\ud800\udc`, 0), []string{`\ud800 at header byte 2`, "half of a surrogate pair"}},
	{"trailing garbage", assemble(`{}  x`, 0), []string{"byte 2", `"x"`}},
	{"trailing object", assemble(`{}{}`, 0), []string{"byte 2", `"{}"`}},
	{"trailing newline", assemble("{}\n", 0), []string{"byte 2", `"\n"`}},
	{"trailing NUL", assemble("{}\x00", 0), []string{"byte 2", `"\x00"`}},

	{"metadata not an object", assemble(`{"__metadata__":[]}`, 0), []string{"__metadata__", "an object", "["}},
	{"metadata null", assemble(`{"__metadata__":null}`, 0), []string{"__metadata__", "an object", "null"}},
	{"metadata number", assemble(`{"__metadata__":{"k":12}}`, 0), []string{"__metadata__", `"k"`, "12", "not a string"}},
	{"metadata value null", assemble(`{"__metadata__":{"k":null}}`, 0), []string{"__metadata__", `"k"`, "null", "not a string"}},
	{"metadata object", assemble(`{"__metadata__":{"k":{}}}`, 0), []string{"__metadata__", `"k"`, "{", "not a string"}},
	{"metadata key twice", assemble(`{"__metadata__":{"k":"1","k":"1"}}`, 0), []string{"__metadata__", `"k"`, "twice"}},
	{"metadata twice", assemble(`{"__metadata__":{},"__metadata__":{}}`, 0), []string{`"__metadata__"`, "twice", "byte 33"}},

	{"tensor twice", assemble(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`, 2), []string{`"a"`, "twice"}},
	{"tensor twice, spelt otherwise", assemble(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"\u0061":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`, 2), []string{`"a"`, "twice"}},
	{"tensor not an object", assemble(`{"a":7}`, 0), []string{`tensor "a"`, "an object", "7"}},
	{"entry key twice", assemble(`{"a":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, 1), []string{`tensor "a"`, `"dtype"`, "twice"}},
	{"entry key unknown", assemble(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"stride":[1]}}`, 1), []string{`tensor "a"`, `"stride"`, "unknown key"}},
	{"no dtype", assemble(`{"a":{"shape":[1],"data_offsets":[0,1]}}`, 1), []string{`tensor "a"`, "dtype", "missing"}},
	{"no shape", assemble(`{"a":{"dtype":"U8","data_offsets":[0,1]}}`, 1), []string{`tensor "a"`, "shape", "missing"}},
	{"no offsets", assemble(`{"a":{"dtype":"U8","shape":[1]}}`, 1), []string{`tensor "a"`, "data_offsets", "missing"}},
	{"unknown dtype", assemble(`{"a":{"dtype":"F2","shape":[4],"data_offsets":[0,1]}}`, 1), []string{`tensor "a"`, `unknown dtype "F2"`}},
	{"odd number of nibbles", assemble(`{"a":{"dtype":"F4","shape":[3,5],"data_offsets":[0,8]}}`, 8), []string{`tensor "a"`, "F4 [3 5] has 15 elements of 4 bits", "do not fill whole bytes"}},
	{"nibbles rounded down", assemble(`{"a":{"dtype":"F4","shape":[3],"data_offsets":[0,1]}}`, 1), []string{`tensor "a"`, "3 elements of 4 bits"}},
	{"half a byte", assemble(`{"a":{"dtype":"F4","shape":[],"data_offsets":[0,1]}}`, 1), []string{`tensor "a"`, "1 elements of 4 bits"}},
	{"F6 in half bytes", assemble(`{"a":{"dtype":"F6_E2M3","shape":[2,3],"data_offsets":[0,5]}}`, 5), []string{`tensor "a"`, "F6_E2M3 [2 3] has 6 elements of 6 bits"}},
	{"F4 in bytes", assemble(`{"a":{"dtype":"F4","shape":[4],"data_offsets":[0,4]}}`, 4), []string{`tensor "a"`, "F4 [4] takes 2 bytes", "[0 4] span 4"}},
	{"F6 in bytes", assemble(`{"a":{"dtype":"F6_E3M2","shape":[4],"data_offsets":[0,4]}}`, 4), []string{`tensor "a"`, "F6_E3M2 [4] takes 3 bytes", "[0 4] span 4"}},
	{"F4 overflows", assemble(`{"a":{"dtype":"F4","shape":[2147483647,2147483647,4],"data_offsets":[0,0]}}`, 0), []string{`tensor "a"`, "overflows", "shape[2]"}},
	{"C64 in 4 bytes", assemble(`{"a":{"dtype":"C64","shape":[1],"data_offsets":[0,4]}}`, 4), []string{`tensor "a"`, "C64 [1] takes 8 bytes"}},
	{"dtype in small letters", assemble(`{"a":{"dtype":"f32","shape":[1],"data_offsets":[0,4]}}`, 4), []string{`tensor "a"`, `unknown dtype "f32"`}},
	{"dtype number", assemble(`{"a":{"dtype":32,"shape":[1],"data_offsets":[0,4]}}`, 4), []string{`tensor "a"`, "dtype is 32", "not a string"}},

	{"shape not an array", assemble(`{"a":{"dtype":"U8","shape":1,"data_offsets":[0,1]}}`, 1), []string{`tensor "a"`, "shape", "1"}},
	{"dim negative", assemble(`{"a":{"dtype":"U8","shape":[2,-3],"data_offsets":[0,6]}}`, 6), []string{`tensor "a"`, "shape[1] is -3"}},
	{"dim fraction", assemble(`{"a":{"dtype":"U8","shape":[1.0],"data_offsets":[0,1]}}`, 1), []string{`tensor "a"`, "shape[0] is 1.0"}},
	{"dim exponent", assemble(`{"a":{"dtype":"U8","shape":[1e0],"data_offsets":[0,1]}}`, 1), []string{`tensor "a"`, "shape[0] is 1e0"}},
	{"dim string", assemble(`{"a":{"dtype":"U8","shape":["1"],"data_offsets":[0,1]}}`, 1), []string{`tensor "a"`, `shape[0] is "1"`}},
	{"dim null", assemble(`{"a":{"dtype":"U8","shape":[null],"data_offsets":[0,1]}}`, 1), []string{`tensor "a"`, "shape[0] is null"}},
	{"dim array", assemble(`{"a":{"dtype":"U8","shape":[[1]],"data_offsets":[0,1]}}`, 1), []string{`tensor "a"`, "shape[0] is ["}},
	{"dim of 2^63", assemble(`{"a":{"dtype":"U8","shape":[9223372036854775808],"data_offsets":[0,0]}}`, 0), []string{`tensor "a"`, "shape[0] is 9223372036854775808"}},
	{"dim of 2^64", assemble(`{"a":{"dtype":"U8","shape":[18446744073709551616],"data_offsets":[0,0]}}`, 0), []string{`tensor "a"`, "shape[0] is 18446744073709551616"}},
	{"product overflows", assemble(`{"a":{"dtype":"U8","shape":[2147483647,2147483647,4],"data_offsets":[0,0]}}`, 0), []string{`tensor "a"`, "[2147483647 2147483647 4]", "overflows", "shape[2]"}},
	{"product wraps to 0", assemble(`{"a":{"dtype":"U8","shape":[65536,65536,65536,65536],"data_offsets":[0,0]}}`, 0), []string{`tensor "a"`, "overflows", "shape[3]"}},
	{"bytes overflow", assemble(`{"a":{"dtype":"F64","shape":[1073741824,1073741824],"data_offsets":[0,0]}}`, 0), []string{`tensor "a"`, "F64", "overflows", "shape[1]"}},
	{"overflow beside 0", assemble(`{"a":{"dtype":"U8","shape":[0,2147483647,2147483647,4],"data_offsets":[0,0]}}`, 0), []string{`tensor "a"`, "overflows", "shape[3]"}},

	{"offsets not an array", assemble(`{"a":{"dtype":"U8","shape":[1],"data_offsets":{}}}`, 1), []string{`tensor "a"`, "data_offsets", "{"}},
	{"one offset", assemble(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0]}}`, 1), []string{`tensor "a"`, "data_offsets", "1 numbers"}},
	{"three offsets", assemble(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1,2]}}`, 1), []string{`tensor "a"`, "data_offsets", "3 numbers"}},
	{"offset negative", assemble(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[-1,0]}}`, 1), []string{`tensor "a"`, "data_offsets[0] is -1"}},
	{"offset of 2^63", assemble(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,9223372036854775808]}}`, 1), []string{`tensor "a"`, "data_offsets[1] is 9223372036854775808"}},
	{"offsets backwards", assemble(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[1,0]}}`, 1), []string{`tensor "a"`, "[1 0]", "backwards"}},
	{"span too small", assemble(`{"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,20]}}`, 20), []string{`tensor "a"`, "F32 [2 3]", "24 bytes", "[0 20]"}},
	{"span too large", assemble(`{"a":{"dtype":"F32","shape":[],"data_offsets":[0,8]}}`, 8), []string{`tensor "a"`, "F32 []", "4 bytes", "[0 8]"}},
	{"overlap", assemble(`{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[3,7]}}`, 7), []string{`tensor "b"`, "[3 7]", "overlap", `"a"`, "ends at 4"}},
	{"same place", assemble(`{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}`, 4), []string{`tensor "b"`, "[0 4]", "overlap", `"a"`}},
	{"empty within another", assemble(`{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[0],"data_offsets":[2,2]}}`, 4), []string{`tensor "b"`, "[2 2]", "overlap", `"a"`}},
	{"hole first", assemble(`{"a":{"dtype":"U8","shape":[4],"data_offsets":[1,5]}}`, 5), []string{`tensor "a"`, "[1 5]", "hole from 0 to 1"}},
	{"hole between", assemble(`{"b":{"dtype":"U8","shape":[4],"data_offsets":[6,10]},"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}`, 10), []string{`tensor "b"`, "[6 10]", "hole from 4 to 6"}},
	{"data short", assemble(`{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}`, 3), []string{`tensor "a"`, "[0 4]", "3 bytes"}},
	{"data absent", assemble(`{"a":{"dtype":"U8","shape":[1099511627],"data_offsets":[0,1099511627]}}`, 0), []string{`tensor "a"`, "[0 1099511627]", "0 bytes"}},
	{"last offset 2^63-1", assemble(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[9223372036854775806,9223372036854775807]}}`, 1), []string{`tensor "a"`, "hole from 0 to 9223372036854775806"}},
	{"data long", assemble(`{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}`, 9), []string{"end at offset 4", "9 bytes", "5 too many"}},
	{"data without tensors", assemble(`{}`, 2), []string{"2 bytes", "2 too many"}},
}

func TestReaderRefusesMalformedFiles(t *testing.T) {
	for _, c := range malformedFiles {
		t.Run(c.name, func(t *testing.T) {
			f, err := read(c.file)
			require.Error(t, err)
			require.Nil(t, f)
			require.True(t, strings.HasPrefix(err.Error(), "safetensors: "), err)
			require.NotContains(t, err.Error(), "\n")
			for _, want := range c.want {
				require.ErrorContains(t, err, want)
			}
		})
	}
}

func TestReaderRefusesDimensionThatIsNoInt(t *testing.T) {
	if strconv.IntSize == 64 {
		t.Skip("every dimension of at most 63 bits is an int here; GOARCH=386 tests this")
	}
	_, err := read(assemble(`{"a":{"dtype":"U8","shape":[4294967296,0],"data_offsets":[0,0]}}`, 0))
	require.ErrorContains(t, err, `tensor "a": shape[0] is 4294967296: not a whole number from 0 to 2147483647`)
}

func TestReaderDescribesTensors(t *testing.T) {
	f, err := read(validFiles["any data order"])
	require.NoError(t, err)
	tensors := f.Tensors()
	require.Equal(t, []Info{
		{Name: "a", DType: Bool, Shape: []int{2}, Offset: 0},
		{Name: "b", DType: U8, Shape: []int{0}, Offset: 2},
		{Name: "c", DType: U8, Shape: []int{2}, Offset: 2},
	}, tensors)

	c, ok := f.Info("c")
	require.True(t, ok)
	require.Equal(t, tensors[2], c)
	_, ok = f.Info("d")
	require.False(t, ok)

	data, err := f.Bytes("c")
	require.NoError(t, err)
	require.Equal(t, []byte{2, 3}, data)
	data, err = f.Bytes("b")
	require.NoError(t, err)
	require.Empty(t, data)
	section, err := f.Section("a")
	require.NoError(t, err)
	data, err = io.ReadAll(section)
	require.NoError(t, err)
	require.Equal(t, []byte{0, 1}, data)
	require.NoError(t, f.Close())
}

func TestReaderHandsOutCopies(t *testing.T) {
	f, err := read(assemble(`{"__metadata__":{"k":"v"},"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}`, 2))
	require.NoError(t, err)
	f.Metadata()["k"] = "changed"
	f.Tensors()[0].Shape[0] = 9
	info, _ := f.Info("a")
	info.Shape[0] = 9

	require.Equal(t, map[string]string{"k": "v"}, f.Metadata())
	info, _ = f.Info("a")
	require.Equal(t, []int{2}, info.Shape)
}

func TestReaderTellsAbsentMetadataFromEmpty(t *testing.T) {
	f, err := read(validFiles["nothing"])
	require.NoError(t, err)
	require.Nil(t, f.Metadata())
	f, err = read(validFiles["empty metadata"])
	require.NoError(t, err)
	require.Equal(t, map[string]string{}, f.Metadata())
}

func TestReaderNamesMissingTensor(t *testing.T) {
	f, err := read(validFiles["nothing"])
	require.NoError(t, err)
	_, err = f.Section("x")
	require.EqualError(t, err, `safetensors: there is no tensor "x"`)
	_, err = f.Bytes("x")
	require.EqualError(t, err, `safetensors: there is no tensor "x"`)
	_, err = f.Float32s("x")
	require.EqualError(t, err, `safetensors: there is no tensor "x"`)
}

// readerAt records how far it was read, and fails from limit on.
type readerAt struct {
	file  []byte
	limit int64
	end   int64
}

var errLimit = errors.New("read past the limit")

func (r *readerAt) ReadAt(p []byte, off int64) (int, error) {
	r.end = max(r.end, off+int64(len(p)))
	if r.end > r.limit {
		return 0, errLimit
	}
	return bytes.NewReader(r.file).ReadAt(p, off)
}

func TestReaderReadsOnlyTheHeaderAtOpen(t *testing.T) {
	file := validFiles["matrix"]
	data := int64(len(file) - 12)
	r := &readerAt{file: file, limit: data}
	f, err := NewReader(r, int64(len(file)))
	require.NoError(t, err)
	require.Equal(t, data, r.end)

	_, err = f.Bytes("a")
	require.ErrorIs(t, err, errLimit)
	require.ErrorContains(t, err, `tensor "a": reading its 12 bytes at data offset 0`)
	_, err = f.Float32s("a")
	require.ErrorIs(t, err, errLimit)
}

func TestReaderReportsFileThatShrank(t *testing.T) {
	file := validFiles["matrix"]
	f, err := NewReader(bytes.NewReader(file[:len(file)-12]), int64(len(file)))
	require.NoError(t, err)
	_, err = f.Bytes("a")
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)

	_, err = NewReader(bytes.NewReader(file[:7]), int64(len(file)))
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.ErrorContains(t, err, "reading the header length")

	_, err = NewReader(bytes.NewReader(file[:20]), int64(len(file)))
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.ErrorContains(t, err, "reading the header of")
}

func TestReaderDoesNotAllocateWhatIsClaimed(t *testing.T) {
	header := append(binary.LittleEndian.AppendUint64(nil, maxHeader), "{}"...)
	data := assemble(`{"a":{"dtype":"F16","shape":[268435456],"data_offsets":[0,536870912]}}`, 1000)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)

	_, err := NewReader(bytes.NewReader(header), maxHeader+prefixSize)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	f, err := NewReader(bytes.NewReader(data), int64(len(data))-1000+1<<29)
	require.NoError(t, err)
	_, err = f.Bytes("a")
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	_, err = f.Float32s("a")
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	_, err = Elements[uint16](f, "a")
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)

	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
}

func TestReaderRefusesToLoadMoreThanMemory(t *testing.T) {
	file := assemble(`{"a":{"dtype":"F16","shape":[1073741824,1073741824],"data_offsets":[0,2305843009213693952]}}`, 0)
	f, err := NewReader(bytes.NewReader(file), int64(len(file))+1<<61)
	require.NoError(t, err)
	_, err = f.Bytes("a")
	require.ErrorContains(t, err, `safetensors: tensor "a": F16 [1073741824 1073741824] does not fit in memory: it takes `)
	_, err = f.Float32s("a")
	require.ErrorContains(t, err, `safetensors: tensor "a": F16 [1073741824 1073741824] does not fit in memory: it takes `)
	_, err = Elements[uint16](f, "a")
	require.ErrorContains(t, err, `safetensors: tensor "a": F16 [1073741824 1073741824] does not fit in memory: it takes `)
	section, err := f.Section("a")
	require.NoError(t, err)
	require.Equal(t, int64(1)<<61, section.Size())
}

func TestReaderServesManyGoroutines(t *testing.T) {
	f, err := read(validFiles["matrix"])
	require.NoError(t, err)
	want, err := f.Float32s("a")
	require.NoError(t, err)
	var wg sync.WaitGroup
	results := make([][]float32, 8)
	for i := range results {
		wg.Go(func() {
			f.Tensors()
			f.Metadata()
			results[i], _ = f.Float32s("a")
		})
	}
	wg.Wait()
	for _, got := range results {
		require.Equal(t, want, got)
	}
}

func TestOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.safetensors")
	_, err := Open(path)
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = Open(filepath.Dir(path))
	require.EqualError(t, err, "safetensors: open "+filepath.Dir(path)+": it is a directory, not a regular file")

	require.NoError(t, os.WriteFile(path, assemble(`{}`, 1), 0o600))
	_, err = Open(path)
	require.ErrorContains(t, err, "safetensors: "+path+": ")

	require.NoError(t, os.WriteFile(path, validFiles["matrix"], 0o600))
	f, err := Open(path)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	_, err = f.Bytes("a")
	require.ErrorIs(t, err, os.ErrClosed)
	require.ErrorIs(t, f.Close(), os.ErrClosed)
}

func TestReaderReadsRealFiles(t *testing.T) {
	f, err := Open(testutil.Shared(t, "golden", "gemm.safetensors"))
	require.NoError(t, err)
	defer f.Close()
	a, ok := f.Info("block.a")
	require.True(t, ok)
	require.Equal(t, Info{Name: "block.a", DType: F8E4M3, Shape: []int{33, 300}}, a)
	require.Contains(t, f.Metadata(), "layout")
	scales, err := f.Float32s("block.a_scales")
	require.NoError(t, err)
	require.Len(t, scales, 33*3)
	for i, s := range scales {
		if !(s > 0) || math.IsInf(float64(s), 0) {
			t.Fatalf("scale %d is %v", i, s)
		}
	}
	_, err = f.Float32s("block.a")
	require.ErrorContains(t, err, `tensor "block.a" is F8_E4M3`)
	requireRoundTrip(t, f)

	f, err = Open(testutil.Shared(t, "data", "stories260K.safetensors"))
	require.NoError(t, err)
	defer f.Close()
	require.Equal(t, "64", f.Metadata()["hidden_size"])
	embedding, err := f.Float32s("model.embed_tokens.weight")
	require.NoError(t, err)
	require.Len(t, embedding, 512*64)
	requireRoundTrip(t, f)
}
