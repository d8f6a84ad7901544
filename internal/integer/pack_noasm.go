//go:build purego || !amd64

package integer

import "github.com/octavo-fp8/octavo/internal/kernels"

var (
	lookupKernels  []kernels.Implementation[lookupFunc]
	quadsKernels   []kernels.Implementation[quadsFunc]
	columnsKernels []kernels.Implementation[columnsFunc]
	powersKernels  []kernels.Implementation[powersFunc]
	outerKernels   []kernels.Implementation[outerFunc]
	splitKernels   []kernels.Implementation[splitFunc]
	startsKernels  []kernels.Implementation[startsFunc]
)
