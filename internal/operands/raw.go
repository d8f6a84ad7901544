package operands

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/octavo-fp8/octavo/internal/inputfile"
	"github.com/octavo-fp8/octavo/internal/memory"
	"github.com/octavo-fp8/octavo/safetensors"
)

// parseRaw reads a name such as "x.bin:F32:64x128": a file of raw bytes, their type and
// their shape.
func parseRaw(name string) (path string, info safetensors.Info, ok bool) {
	rest, shape, ok := cutLast(name)
	if !ok {
		return "", info, false
	}
	path, dtype, ok := cutLast(rest)
	if !ok || path == "" {
		return "", info, false
	}
	info.Name = name
	if info.DType, ok = parseDType(dtype); !ok {
		return "", info, false
	}
	for text := range strings.SplitSeq(shape, "x") {
		n, err := strconv.ParseUint(text, 10, 63)
		if err != nil || n > math.MaxInt {
			return "", info, false
		}
		info.Shape = append(info.Shape, int(n))
	}
	return path, info, true
}

// cutLast cuts text at its last colon.
func cutLast(text string) (before, after string, ok bool) {
	at := strings.LastIndexByte(text, ':')
	if at < 0 {
		return "", "", false
	}
	return text[:at], text[at+1:], true
}

// readRaw reads a file of raw bytes, which has to hold the tensor and nothing else.
func readRaw(path string, info safetensors.Info) (safetensors.Tensor, error) {
	file, size, err := inputfile.Open(path)
	if err != nil {
		return safetensors.Tensor{}, fmt.Errorf("operands: %w", err)
	}
	defer file.Close()
	if want := info.Bytes(); want != size {
		return safetensors.Tensor{}, fmt.Errorf("operands: %s has %d bytes: %s of shape %v has %d", path, size, info.DType, info.Shape, want)
	}
	if err := memory.Check(size, 1, path, "take smaller operands"); err != nil {
		return safetensors.Tensor{}, fmt.Errorf("operands: %w", err)
	}
	data := make([]byte, size)
	if _, err := io.ReadFull(file, data); err != nil {
		return safetensors.Tensor{}, fmt.Errorf("operands: %s: %w", path, err)
	}
	return safetensors.Tensor{Info: info, Data: data}, nil
}
