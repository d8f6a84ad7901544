//go:build !js && !race

// Browsers have no races of ours, and what drives them takes a minute to compile.

package inspect

import (
	"testing"

	"github.com/octavo-fp8/octavo/internal/filetest"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/lab/browsertest"
	"github.com/octavo-fp8/octavo/safetensors"
)

// TestPages opens pages in a browser.
func TestPages(t *testing.T) {
	b := browsertest.Start(t)
	b.Check(t, "inspect", pageOf(t, View{Sort: ByRisk}, testutil.Shared(t, "data", "stories260K.safetensors")))
	b.Check(t, "inspect-troubled", pageOf(t, View{Sort: ByRisk}, troubled(t)))
	b.Check(t, "inspect-integers", pageOf(t, View{Sort: ByRisk}, filetest.Write(t, nil, filetest.Raw("ids", safetensors.I32, []int{1}, 1, 2, 3, 4))))
}
