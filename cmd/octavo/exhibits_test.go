package main

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/safetensors"
)

var updateMuseum = flag.Bool("update-museum", false, "write docs/museum.md and its pictures anew")

// rebuilt is a fault that has shipped, rebuilt as data: numbers are random, the fault is
// applied to them.
type rebuilt struct {
	name, report, fault string
	flags               []string
	// expect are lists of words: an explanation names the fault if it has one of each list.
	expect [][]string
	files  func(r *rand.Rand) rebuiltFiles
}

type rebuiltFiles struct{ input, honest, wrong []safetensors.Tensor }

// wing is the exhibits of one kind, the command that judges them, and what a picture shows:
// the largest difference of one of its tensors.
type wing struct {
	name, about string
	exhibits    []rebuilt
	command     func(e *rebuilt, input, got string) []string
	shown       string
}

var museum = []wing{
	{"products", "What a kernel made of C = A·Bᵀ. Down the picture are rows of C, across it columns.",
		productExhibits, func(e *rebuilt, input, got string) []string {
			return append([]string{"verify", input, "--got", got}, e.flags...)
		}, "c"},
	{"attention", "What a kernel made of softmax(Q·Kᵀ)·V. Down the picture are queries, one head after the other, across it columns.",
		attentionExhibits, func(e *rebuilt, input, got string) []string {
			return append([]string{"verify", "attention", input, "--got", got}, e.flags...)
		}, "out"},
	{"quantizers", "What a quantizer made of X: codes and scales. Down the picture are rows, across it columns of codes.",
		quantizerExhibits, func(e *rebuilt, input, got string) []string {
			return append([]string{"verify", "quantizer", input, "--x", "x", "--codes", got + ":codes", "--scales", got + ":scales"}, e.flags...)
		}, "codes"},
	{"caches", "What an engine wrote to its cache of K and V, and read back. Down the picture are tokens and heads, across it columns of V as they were read.",
		cacheExhibits, func(e *rebuilt, input, got string) []string {
			return append([]string{"verify", "cache", input, "--got", got}, e.flags...)
		}, "v_read"},
}

// TestExhibits judges each exhibit: what is honest passes, what is wrong fails and is named.
func TestExhibits(t *testing.T) {
	for _, w := range museum {
		for _, e := range w.exhibits {
			t.Run(w.name+"/"+e.name, func(t *testing.T) {
				seeds := uint64(1)
				if testutil.Full() {
					seeds = 20
				}
				for seed := range seeds {
					_, text := w.judge(t, &e, seed)
					require.True(t, (&exhibit{Expect: e.expect}).names(text), "%s: %s", e.fault, text)
				}
			})
		}
	}
}

// judge lets the command judge an exhibit, and returns what explains the result.
func (w *wing) judge(t *testing.T, e *rebuilt, seed uint64) (f rebuiltFiles, explanation string) {
	f = e.files(rand.New(rand.NewPCG(seed, 36)))
	dir := t.TempDir()
	write := func(name string, tensors []safetensors.Tensor) string {
		path := filepath.Join(dir, name+".safetensors")
		require.NoError(t, safetensors.WriteFile(path, tensors, nil))
		return path
	}
	input := write("input", f.input)
	r := octavo(nil, w.command(e, input, write("honest", f.honest))...)
	require.Zero(t, r.status, "honest: %s%s", r.stdout, r.stderr)
	r = octavo(nil, w.command(e, input, write("wrong", f.wrong))...)
	require.Equal(t, 1, r.status, r.stdout+r.stderr)
	return f, diagnosis(r.stdout)
}

const museumPage = "../../docs/museum.md"

// TestExhibitsPage writes the page where that is asked for, and otherwise looks whether every
// exhibit is on it.
func TestExhibitsPage(t *testing.T) {
	if *updateMuseum {
		writeMuseum(t)
	}
	text, err := os.ReadFile(museumPage)
	require.NoError(t, err)
	for _, w := range museum {
		for _, e := range w.exhibits {
			require.Contains(t, string(text), sentence(e.fault), "run go test ./cmd/octavo -run TestExhibitsPage -update-museum")
			require.FileExists(t, filepath.Join("../../docs/museum", e.name+".png"))
		}
	}
}

func writeMuseum(t *testing.T) {
	var page strings.Builder
	page.WriteString(museumIntroduction)
	for _, w := range museum {
		fmt.Fprintf(&page, "\n## %s\n\n%s\n", strings.ToUpper(w.name[:1])+w.name[1:], w.about)
		for _, e := range w.exhibits {
			f, text := w.judge(t, &e, 0)
			require.NoError(t, os.WriteFile(filepath.Join("../../docs/museum", e.name+".png"), picture(t, f, w.shown), 0o666))
			repository, number, _ := strings.Cut(e.report, "#")
			fmt.Fprintf(&page, "\n### %s\n\n![Errors](museum/%s.png)\n\n", sentence(e.fault), e.name)
			if e.report != "" {
				fmt.Fprintf(&page, "[%s](https://github.com/%s/issues/%s)\n\n", e.report, repository, number)
			}
			command := w.command(&e, "input.safetensors", "wrong.safetensors")
			fmt.Fprintf(&page, "    octavo %s\n\n> %s\n", strings.Join(command, " "), text)
		}
	}
	require.NoError(t, os.WriteFile(museumPage, []byte(page.String()), 0o666))
}

const museumIntroduction = `# The museum

Faults of FP8 and FP4 numerics that have shipped, most of them found by somebody who lost
days. Each is rebuilt as data: numbers are random, the fault is applied to them, and nothing
here is anybody's code. A picture has a cell for some elements of the result: the darker, the
larger the largest error among them. Below is the command that judges the exhibit, and what
it says.

Tests of the command make all exhibits anew, with twenty seeds in full runs. They also make what a
correct kernel returns, which must pass. "octavo verify --list" has the table of all faults
that are known.
`

// sentence begins with a capital letter.
func sentence(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// picture draws the differences of a tensor: the largest of each cell, on a logarithmic
// scale of the largest of all.
func picture(t *testing.T, f rebuiltFiles, name string) []byte {
	const most = 56
	honest, wrong := tensorOf(f.honest, name), tensorOf(f.wrong, name)
	rows, cols := 1, honest.Shape[len(honest.Shape)-1]
	for _, n := range honest.Shape[:len(honest.Shape)-1] {
		rows *= n
	}
	high, wide := (rows+most-1)/most, (cols+most-1)/most
	down, across := (rows+high-1)/high, (cols+wide-1)/wide
	cells := make([]float64, down*across)
	a, b := elementsOf(honest), elementsOf(wrong)
	for i := range rows {
		for j := range cols {
			off := math.Abs(a[i*cols+j] - b[i*cols+j])
			if off != off || math.IsInf(off, 0) {
				off = math.MaxFloat32
			}
			at := i/high*across + j/wide
			cells[at] = max(cells[at], off)
		}
	}
	top := 0.0
	for _, x := range cells {
		if x < math.MaxFloat32 {
			top = max(top, x)
		}
	}
	const side = 6
	m := image.NewPaletted(image.Rect(0, 0, across*side, down*side), palette())
	for at := range m.Pix {
		x := cells[at/(across*side)/side*across+at%(across*side)/side]
		switch {
		case x >= top && x > 0: // what is not finite, and the largest
			m.Pix[at] = shades
		case x > 0:
			m.Pix[at] = uint8(1 + max(0, (1+math.Log10(x/top)/6)*(shades-1)))
		}
	}
	var out bytes.Buffer
	require.NoError(t, png.Encode(&out, m))
	return out.Bytes()
}

const shades = 24

// palette goes from paper to dark red.
func palette() (p color.Palette) {
	for n := range shades + 1 {
		mix := func(from, to int) uint8 { return uint8(from + (to-from)*n/shades) }
		p = append(p, color.RGBA{mix(0xf4, 0x8c), mix(0xf4, 0x1d), mix(0xf2, 0x40), 0xff})
	}
	return p
}

func tensorOf(all []safetensors.Tensor, name string) safetensors.Tensor {
	return all[slices.IndexFunc(all, func(t safetensors.Tensor) bool { return t.Name == name })]
}

// elementsOf returns numbers, and of codes their bytes or halves of bytes.
func elementsOf(t safetensors.Tensor) (all []float64) {
	for i := range len(t.Data) {
		switch {
		case t.DType == safetensors.F32 && i%4 == 0:
			all = append(all, float64(math.Float32frombits(binary.LittleEndian.Uint32(t.Data[i:]))))
		case t.DType == safetensors.BF16 && i%2 == 0:
			all = append(all, float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(t.Data[i:]))<<16)))
		case t.DType == safetensors.F4:
			all = append(all, float64(t.Data[i]&15), float64(t.Data[i]>>4))
		case t.DType != safetensors.F32 && t.DType != safetensors.BF16:
			all = append(all, float64(t.Data[i]))
		}
	}
	return all
}
