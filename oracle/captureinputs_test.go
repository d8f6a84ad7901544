package oracle

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
)

// TestCaptureH200 demands the bits that an H200 returned for all cases of
// bench/gpu/capture.cu. The inputs are made again here, as that program makes them, and
// testdata/h200.txt has the SHA-256 of each case's results. silicon.md has how many of the
// first 2,048 results of each case another F would change.
func TestCaptureH200(t *testing.T) {
	type group struct {
		model             Model
		name              string
		results, less, up int
	}
	var groups []*group
	all := capturedSums(t, "testdata/h200.txt")
	require.Len(t, all, 192)
	for _, sum := range all {
		c := captureInputs(t, sum.name, "9.0")
		for i := range c.c {
			c.d = append(c.d, c.result(c.model, i))
		}
		hash := sha256.Sum256(c.raw(c.d))
		require.Equal(t, sum.hash, hex.EncodeToString(hash[:]), sum.name)

		words := strings.Split(sum.name, "-")
		name := fmt.Sprintf("| %s | %s by %s | %s | %s", words[0], words[2], words[3], words[1], c.model.Name)
		if len(groups) == 0 || groups[len(groups)-1].name != name {
			groups = append(groups, &group{model: c.model, name: name})
		}
		g := groups[len(groups)-1]
		g.results += len(c.d)
		c.d = c.d[:2048] // of as many as the smallest case has
		shorter, longer := c.model, c.model
		shorter.F--
		longer.F++
		g.less += c.misses(shorter)
		g.up += c.misses(longer)
	}
	var table strings.Builder
	table.WriteString("| instruction | operands | result | model | results | mismatches | F-1 | F+1 |\n|---|---|---|---|---|---|---|---|\n")
	for _, g := range groups {
		fmt.Fprintf(&table, "%s | %d | 0 | %d | %d |\n", g.name, g.results, g.less, g.up)
	}
	checkTable(t, "Captured on an H200", table.String())
}

// capturedSum is the SHA-256 of the results of a case, little-endian.
type capturedSum struct{ name, hash string }

func capturedSums(t *testing.T, path string) (sums []capturedSum) {
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		hash, name, ok := strings.Cut(lines.Text(), "  ")
		require.True(t, ok, lines.Text())
		sums = append(sums, capturedSum{name, hash})
	}
	require.NoError(t, lines.Err())
	return sums
}

// captureInputs makes the inputs of a case of capture.cu.
func captureInputs(t *testing.T, name, compute string) *captured {
	words := strings.Split(name, "-")
	require.Len(t, words, 6)
	k, err := strconv.Atoi(strings.TrimPrefix(words[5], "k"))
	require.NoError(t, err)
	c := &captured{k: k, n: 8, half: words[1] == "f16"}
	tiles := 16
	switch words[0] {
	case "mma":
		c.m = 16
	case "wgmma":
		c.m = 64
	default:
		t.Fatalf("inputs of %s are not made", words[0])
	}
	float := NoFloat
	if words[2] == words[3] {
		float, _ = ParseFloat(words[2])
	}
	c.model, err = modelOf(words[0], compute, float)
	require.NoError(t, err)

	fa, fb := captureFormats[words[2]], captureFormats[words[3]]
	r := &captureRandom{}
	for i := range len(name) {
		r.state = r.state*31 + uint64(name[i])
	}
	inputs := words[4]
	a, b := make([]uint32, tiles*c.m*k), make([]uint32, tiles*c.n*k)
	for i := range a {
		a[i] = r.code(fa, inputs)
	}
	for i := range b {
		b[i] = r.code(fb, inputs)
	}
	for tile := 0; tile < tiles && inputs == "cancel"; tile++ {
		x := int(r.below(uint32(k)))
		y := (x + 1 + int(r.below(uint32(k-1)))) % k
		for i := tile * c.m; i < (tile+1)*c.m; i++ {
			a[i*k+x] = fa.large()
			a[i*k+y] = fa.large() | fa.sign()
		}
		for j := tile * c.n; j < (tile+1)*c.n; j++ {
			b[j*k+x], b[j*k+y] = fb.large(), fb.large()
		}
	}
	sum := captureFormat{exponent: 8, fraction: 23}
	if c.half {
		sum = captureFormat{exponent: 5, fraction: 10}
	}
	for range tiles * c.m * c.n {
		c.c = append(c.c, r.accumulator(sum, inputs))
	}
	if float != NoFloat {
		c.x, c.y = captureValues(float, a), captureValues(float, b)
		return c
	}
	c.fa, err = fp8.ParseFormat(words[2])
	require.NoError(t, err)
	c.fb, err = fp8.ParseFormat(words[3])
	require.NoError(t, err)
	for _, code := range a {
		c.a = append(c.a, byte(code))
	}
	for _, code := range b {
		c.b = append(c.b, byte(code))
	}
	return c
}

func captureValues(f Float, codes []uint32) (values []float32) {
	for _, code := range codes {
		switch f {
		case TF32:
			values = append(values, math.Float32frombits(code<<13))
		case BF16:
			values = append(values, math.Float32frombits(code<<16))
		default:
			values = append(values, float16.Frombits(uint16(code)).Float32())
		}
	}
	return values
}

// captureFormat is how many bits a format's exponent and fraction have.
type captureFormat struct {
	exponent, fraction int
	e4m3               bool
}

var captureFormats = map[string]captureFormat{
	"e4m3": {4, 3, true}, "e5m2": {5, 2, false}, "fp16": {5, 10, false}, "bf16": {8, 7, false}, "tf32": {8, 10, false},
}

func (f captureFormat) bias() int    { return 1<<(f.exponent-1) - 1 }
func (f captureFormat) top() int     { return 2*f.bias() + 1 }
func (f captureFormat) sign() uint32 { return 1 << (f.exponent + f.fraction) }
func (f captureFormat) ones() uint32 { return 1<<f.fraction - 1 }

// large is the largest magnitude of wide inputs.
func (f captureFormat) large() uint32 {
	switch {
	case f.e4m3:
		return 0x7E
	case f.exponent < 8:
		return uint32(2*f.bias())<<f.fraction | f.ones()
	}
	return uint32(f.bias()+20)<<f.fraction | f.ones()
}

// captureRandom is SplitMix64.
type captureRandom struct{ state uint64 }

func (r *captureRandom) next() uint64 {
	r.state += 0x9E3779B97F4A7C15
	z := r.state
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

func (r *captureRandom) below(n uint32) uint32 { return uint32((r.next() >> 32) * uint64(n) >> 32) }

// bits returns a random sign, in place, and fraction.
func (r *captureRandom) bits(f captureFormat) (sign, fraction uint32) {
	sign = r.below(2) * f.sign()
	return sign, uint32(r.next()) & f.ones()
}

func (r *captureRandom) code(f captureFormat, inputs string) uint32 {
	sign, fraction := r.bits(f)
	exponent := 0
	switch inputs {
	case "near":
		exponent = f.bias() - 2 + int(r.below(4))
	case "special":
		exponent = f.bias() - 3 + int(r.below(6))
		switch r.below(32) {
		case 0:
			exponent = f.top()
			if f.e4m3 {
				fraction = 7
			} else if r.below(2) != 0 {
				fraction = 0
			}
		case 1:
			exponent = 0
		case 2:
			exponent, fraction = 0, 0
		}
	default:
		if f.exponent == 8 {
			exponent = f.bias() - 20 + int(r.below(41))
			break
		}
		most := f.top()
		if f.e4m3 {
			most++
		}
		exponent = int(r.below(uint32(most)))
		if f.e4m3 && exponent == f.top() && fraction == 7 {
			fraction = 6
		}
	}
	return sign | uint32(exponent)<<f.fraction | fraction
}

func (r *captureRandom) accumulator(f captureFormat, inputs string) uint32 {
	sign, fraction := r.bits(f)
	if r.below(8) == 0 {
		return sign
	}
	exponent := f.bias() - 2 + int(r.below(8))
	if inputs != "near" {
		exponent = f.bias() - 14 + int(r.below(29))
	}
	if inputs == "special" && r.below(24) == 0 {
		exponent, fraction = f.top(), r.below(2)<<(f.fraction-1)
	}
	return sign | uint32(exponent)<<f.fraction | fraction
}
