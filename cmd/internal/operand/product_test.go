package operand

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/cmd/internal/filetest"
	"github.com/octavo-fp8/octavo/safetensors"
)

// TestSwappedFiles checks that of two files the error names the one without the tensor.
func TestSwappedFiles(t *testing.T) {
	x := filetest.Write(t, nil, filetest.Raw("x", safetensors.F8E4M3, []int{1, 1}, 1))
	w := filetest.Write(t, nil, filetest.Raw("w", safetensors.F8E4M3, []int{1, 1}, 1))
	p := Product{Files: []string{w, x}, A: Operand{Flag: "x"}, B: Operand{Flag: "w"}}
	files, err := p.Open()
	require.NoError(t, err)
	defer files.Close()
	_, _, err = files.Operands()
	require.ErrorContains(t, err, w)
}
