//go:build !js && !race

package explore

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/cmd/internal/wasm"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/lab/browsertest"
	"github.com/octavo-fp8/octavo/lab/page"
)

// perFormat is how many values are compared of each format.
const perFormat = 10_000

// TestCodesInBrowser compares codes that a browser computes with those of the library here.
func TestCodesInBrowser(t *testing.T) {
	b := browsertest.Start(t)
	var p page.Page
	wasm.Add(&p, "globalThis.octavo = octavo;")
	var html bytes.Buffer
	require.NoError(t, p.Write(&html, "Codes"))
	file := filepath.Join(t.TempDir(), "codes.html")
	require.NoError(t, os.WriteFile(file, html.Bytes(), 0o666))

	random := rand.New(rand.NewPCG(1, 2))
	var requests []CodesRequest
	var want [][]byte
	for _, k := range kinds {
		values := valuesFor(random, k)
		bits := make([]byte, 0, 4*perFormat)
		for _, x := range values {
			bits = binary.LittleEndian.AppendUint32(bits, math.Float32bits(x))
		}
		for _, p := range policies() {
			requests = append(requests, CodesRequest{k.name, p, bits})
			want = append(want, codesHere(t, k.name, values, p))
		}
	}
	text, err := json.Marshal(requests)
	require.NoError(t, err)
	got := browsertest.Evaluate[[][]byte](t, b, file, fmt.Sprintf(`(async requests => {
		const all = [];
		for (const r of requests) all.push(await octavo("codes", r));
		return all;
	})(%s)`, text))
	require.Len(t, got, len(want))
	for i, r := range requests {
		require.Len(t, got[i], perFormat)
		if !bytes.Equal(want[i], got[i]) {
			for j := range want[i] {
				require.Equal(t, want[i][j], got[i][j], "%s under %+v of bits %x", r.Format, r.Policy, r.Bits[4*j:4*j+4])
			}
		}
	}
}

// policies are all roundings with all kinds of overflow, and each other choice once.
func policies() (all []fp8.Policy) {
	for _, r := range []fp8.Rounding{fp8.NearestEven, fp8.TowardZero, fp8.Stochastic, fp8.NearestTowardZero} {
		for _, o := range []fp8.Overflow{fp8.OverflowSaturate, fp8.OverflowNonFinite} {
			all = append(all, fp8.Policy{Rounding: r, Overflow: o, Seed: 7})
		}
	}
	return append(all,
		fp8.Policy{Inf: fp8.InfPropagate, NaN: fp8.NaNCanonical, Zero: fp8.ZeroPositive, Quotient: fp8.QuotientBFloat16},
		fp8.Policy{NaN: fp8.NaNZero, Zero: fp8.ZeroNegative, Quotient: fp8.QuotientFloat16},
		fp8.Policy{NaN: fp8.NaNOppositeZero, Zero: fp8.ZeroUnsigned})
}

// codesHere are the codes by the functions of package fp8, found by the names that they give
// their formats.
func codesHere(t *testing.T, name string, values []float32, p fp8.Policy) []byte {
	codes := make([]byte, len(values))
	if f, err := fp8.ParseFormat(name); err == nil {
		fp8.Encode(codes, values, f, p, nil)
		return codes
	}
	if f, err := fp8.ParseP3109(name); err == nil {
		wide := make([]float64, len(values))
		for i, x := range values {
			wide[i] = float64(x)
		}
		f.Encode(codes, wide, p)
		return codes
	}
	var rounding fp8.E8M0Rounding
	if _, text, ok := strings.Cut(name, "E8M0 "); ok {
		require.NoError(t, rounding.UnmarshalText([]byte(text)))
	} else {
		require.Equal(t, "UE4M3", name)
	}
	for i, x := range values {
		if name == "UE4M3" {
			codes[i] = byte(fp8.EncodeUE4M3(x))
		} else {
			codes[i] = byte(rounding.Encode(x, p.Overflow))
		}
	}
	return codes
}

// valuesFor are values whose codes are hard: those of all codes, the middles between them and
// what lies beside both, then random bits, a half of them within the range of formats.
func valuesFor(random *rand.Rand, k kind) []float32 {
	inf := float32(math.Inf(1))
	all := []float32{0, float32(math.Copysign(0, -1)), inf, -inf, math.Float32frombits(0x7FC00000), math.Float32frombits(0xFF800001),
		math.SmallestNonzeroFloat32, math.MaxFloat32, -math.MaxFloat32}
	for code := range 1 << k.bits {
		x, next := k.value(byte(code)), k.value(byte(code+1))
		for _, y := range []float32{x, x/2 + next/2} {
			all = append(all, y, math.Nextafter32(y, inf), math.Nextafter32(y, -inf))
		}
	}
	for i := len(all); i < perFormat; i++ {
		bits := random.Uint32()
		if i%2 == 0 {
			bits = bits&^(0xFF<<23) | (107+bits>>8%40)<<23
		}
		all = append(all, math.Float32frombits(bits))
	}
	return all[:perFormat]
}
