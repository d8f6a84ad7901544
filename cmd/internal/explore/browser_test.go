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
	"github.com/octavo-fp8/octavo/safetensors"
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
	var values [][]float32
	for _, k := range kinds {
		of := valuesFor(random, k)
		bits := make([]byte, 0, 4*perFormat)
		for _, x := range of {
			bits = binary.LittleEndian.AppendUint32(bits, math.Float32bits(x))
		}
		requests, values = append(requests, CodesRequest{Format: k.name, Bits: bits}), append(values, of)
	}
	arguments, err := json.Marshal([]any{requests, policies()})
	require.NoError(t, err)
	got := browsertest.Evaluate[[][][]byte](t, b, file, fmt.Sprintf(`(async ([requests, policies]) => {
		const all = [];
		for (const r of requests) {
			const codes = [];
			for (const Policy of policies) codes.push(await octavo("codes", { ...r, Policy }));
			all.push(codes);
		}
		return all;
	})(%s)`, arguments))
	require.Len(t, got, len(requests))
	for i, r := range requests {
		require.Len(t, got[i], len(policies()))
		for j, p := range policies() {
			for k, want := range codesHere(t, r.Format, values[i], p) {
				if want != got[i][j][k] {
					t.Fatalf("%s under %+v: %v has the code %02X, in the browser %02X", r.Format, p, values[i][k], want, got[i][j][k])
				}
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

// writePage writes the page as the command does.
func writePage(t *testing.T) string {
	var html bytes.Buffer
	require.NoError(t, WritePage(&html, "octavo explore", "a machine"))
	file := filepath.Join(t.TempDir(), "explore.html")
	require.NoError(t, os.WriteFile(file, html.Bytes(), 0o666))
	return file
}

// TestPage opens the page in a browser. What WebAssembly answers to what the page began with
// is what the library here has written into it.
func TestPage(t *testing.T) {
	b := browsertest.Start(t)
	file := writePage(t)
	b.Check(t, "explore", file)
	answer, err := Explore(First(), nil)
	require.NoError(t, err)
	got := browsertest.Evaluate[Answer](t, b, file, `(async () => {
		const field = document.getElementById("ask").elements;
		field.Values.value += " ";
		field.Values.dispatchEvent(new Event("input", { bubbles: true }));
		document.getElementById("blocks").innerHTML = "";
		while (!document.getElementById("blocks").innerHTML) await new Promise(done => setTimeout(done, 20));
		const Parts = {};
		for (const id of ["finding", "about", "blocks", "profiles", "value", "codes", "smoothing"]) Parts[id] = document.getElementById(id).innerHTML;
		return { Parts, Values: Number(field.At.max) };
	})()`)
	require.Equal(t, answer.Values, got.Values)
	for id, html := range answer.Parts {
		got := strings.ReplaceAll(string(got.Parts[id]), ` tabindex="0"`, "") // which depends on the window
		require.Equal(t, strings.ReplaceAll(asBrowser(t, b, string(html)), ` tabindex="0"`, ""), got, id)
	}
}

// TestFileInBrowser drops files on the page: of a good one it shows the first rows of the tensor
// that is chosen, and of a bad one says what is wrong and keeps what it showed.
func TestFileInBrowser(t *testing.T) {
	b := browsertest.Start(t)
	values := make([]float32, 300*64)
	for i := range values {
		values[i] = float32(i % 64)
	}
	good, err := safetensors.Encode([]safetensors.Tensor{
		safetensors.New("first", safetensors.F32, []int{2}, []float32{1, 2}),
		safetensors.New("second", safetensors.F32, []int{300, 64}, values),
	}, nil)
	require.NoError(t, err)
	bad := bytes.Replace(good, []byte("[300,64]"), []byte("[300,65]"), 1)
	files, err := json.Marshal(map[string][]byte{"good": good, "bad": bad})
	require.NoError(t, err)
	said := browsertest.Evaluate[[]string](t, b, writePage(t), fmt.Sprintf(`(async files => {
		const said = [], text = id => document.getElementById(id).textContent;
		const until = async done => { while (!done()) await new Promise(next => setTimeout(next, 20)); };
		const drop = name => {
			const data = new DataTransfer();
			data.items.add(new File([Uint8Array.from(atob(files[name]), c => c.charCodeAt(0))], name + ".safetensors"));
			document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
		};
		drop("good");
		await until(() => text("about").startsWith("first"));
		said.push(text("about"));
		const tensor = document.getElementById("ask").elements.Tensor;
		tensor.value = "second";
		tensor.dispatchEvent(new Event("input", { bubbles: true }));
		await until(() => text("about").startsWith("second"));
		said.push(text("about"));
		drop("bad");
		await until(() => text("problem"));
		said.push(text("problem"), text("about"));
		document.getElementById("ask").elements.back.click();
		await until(() => text("about").endsWith("typed") && !text("problem"));
		const began = performance.now();
		document.getElementById("ask").elements.Values.value = "1.25 3e-7 ".repeat(2048);
		document.getElementById("ask").elements.Format.dispatchEvent(new Event("input", { bubbles: true }));
		await until(() => text("about").startsWith("4096 values, 1 row"));
		said.push(text("about"), String(performance.now() - began));
		return said;
	})(%s)`, files))
	t.Logf("4096 values take %s ms", said[5])
	require.Equal(t, "first, F32 [2]: 2 values, 1 row of 2", said[0])
	require.Equal(t, "second, F32 [300 64]: the first 4096 values, 64 rows of 64", said[1])
	require.Contains(t, said[2], "bad.safetensors: ")
	require.Contains(t, said[2], `"second"`)
	require.Equal(t, said[1], said[3])
	require.Equal(t, "4096 values, 1 row of 4096, typed", said[4])
}

// asBrowser is HTML as a browser writes it.
func asBrowser(t *testing.T, b *browsertest.Browser, html string) string {
	text, err := json.Marshal(html)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "empty.html")
	require.NoError(t, os.WriteFile(file, []byte("<!DOCTYPE html><title>empty</title>"), 0o666))
	return browsertest.Evaluate[string](t, b, file, fmt.Sprintf(`(() => { const e = document.createElement("div"); e.innerHTML = %s; return e.innerHTML; })()`, text))
}
