package main

import (
	"bytes"
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/cmd/internal/filetest"
	"github.com/octavo-fp8/octavo/fp8"
)

// TestEncodeValues checks each flag against codes from the formats' tables.
func TestEncodeValues(t *testing.T) {
	negativeNaN := math.Float32frombits(0xFFC00000)
	values := filetest.FloatBytes(0, 1, -1, 448, 464, 465, -1e9, inf(1), inf(-1), nan, negativeNaN, 1.1, 1.07)
	for flags, want := range map[string]string{
		"--format e4m3":                                          "00 38 B8 7E 7E 7E FE 7E FE 7F FF 39 39",
		"--format E4M3 --overflow nonfinite":                     "00 38 B8 7E 7E 7F FF 7E FE 7F FF 39 39",
		"--format e4m3 --inf propagate":                          "00 38 B8 7E 7E 7E FE 7F FF 7F FF 39 39",
		"--format e4m3 --nan canonical":                          "00 38 B8 7E 7E 7E FE 7E FE 7F 7F 39 39",
		"--format e4m3 --nan keep-sign --inf saturate":           "00 38 B8 7E 7E 7E FE 7E FE 7F FF 39 39",
		"--format e4m3 --round zero":                             "00 38 B8 7E 7E 7E FE 7E FE 7F FF 38 38",
		"--format e5m2 --overflow saturate":                      "00 3C BC 5F 5F 5F FB 7B FB 7F FF 3C 3C",
		"--format e5m2 --overflow nonfinite --inf propagate":     "00 3C BC 5F 5F 5F FC 7C FC 7F FF 3C 3C",
		"--format e4m3fnuz":                                      "00 40 C0 7F 7F 7F FF 7F FF 80 80 41 41",
		"--format e5m2fnuz --overflow nonfinite --round nearest": "00 40 C0 63 63 63 80 7F FF 80 80 40 40",
	} {
		r := octavo(bytes.NewReader(values), append([]string{"encode"}, strings.Fields(flags)...)...)
		require.Equal(t, result{stdout: string(hex(want))}, r, flags)
	}
}

// TestRoundTrip decodes and encodes all codes.
func TestRoundTrip(t *testing.T) {
	codes := make([]byte, 256)
	for i := range codes {
		codes[i] = byte(i)
	}
	for _, f := range fp8.Formats() {
		t.Run(f.String(), func(t *testing.T) {
			decoded := octavo(bytes.NewReader(codes), "decode", "--format", strings.ToLower(f.String()))
			require.Equal(t, 0, decoded.status, decoded.stderr)
			var want []float32
			for _, c := range codes {
				want = append(want, f.Float32(c))
			}
			require.Equal(t, string(filetest.FloatBytes(want...)), decoded.stdout)

			encoded := octavo(strings.NewReader(decoded.stdout), "encode", "--format", f.String(), "--inf", "propagate")
			require.Equal(t, 0, encoded.status, encoded.stderr)
			again := bytes.Clone(codes)
			for i, c := range again {
				c &= 1<<f.Bits() - 1 // what is above a code is ignored
				if again[i] = c; f.IsNaN(c) {
					again[i] = c&0x80 | f.NaNCode() // the payload is not kept
				}
			}
			require.Equal(t, string(again), encoded.stdout)
		})
	}
}

// chunk is how many values are converted at a time.
const chunk = 1 << 16

// TestEncodeChunks checks that cutting the input changes nothing, the random
// numbers of stochastic rounding included.
func TestEncodeChunks(t *testing.T) {
	var values []float32
	for i := range 2*chunk + 3 {
		values = append(values, 1+float32(i%1000)/1000)
	}
	policy := fp8.Policy{Rounding: fp8.Stochastic, Seed: 18446744073709551615}
	want := make([]byte, len(values))
	fp8.Encode(want, values, fp8.E5M2, policy, nil)
	for _, n := range []int{0, 1, 2, chunk - 1, chunk, chunk + 1, 2 * chunk, 2*chunk + 3} {
		in := iotest.HalfReader(bytes.NewReader(filetest.FloatBytes(values[:n]...)))
		r := octavo(in, "encode", "--format", "e5m2", "--round", "stochastic", "--seed", "18446744073709551615")
		require.Equal(t, 0, r.status, r.stderr)
		require.True(t, string(want[:n]) == r.stdout, "%d values", n)

		back := octavo(iotest.OneByteReader(strings.NewReader(r.stdout)), "decode", "--format", "e5m2")
		require.Equal(t, 0, back.status, back.stderr)
		decoded := make([]float32, n)
		fp8.Decode(decoded, want[:n], fp8.E5M2)
		require.True(t, string(filetest.FloatBytes(decoded...)) == back.stdout, "%d values", n)
	}
}

func TestEncodeCutShort(t *testing.T) {
	r := octavo(strings.NewReader("\x00\x00\x80\x3fabc"), "encode", "--format", "e4m3")
	require.Equal(t, result{1, "\x38", "octavo: standard input has 7 bytes, which is not a multiple of 4: the last value lacks 1\n"}, r)

	long := append(make([]byte, 4*chunk), 1)
	r = octavo(bytes.NewReader(long), "encode", "--format", "e4m3")
	require.Equal(t, 1, r.status)
	require.Len(t, r.stdout, chunk)
	require.Contains(t, r.stderr, "has 262145 bytes")
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("no space") }

func TestEncodeStreamsThatFail(t *testing.T) {
	for _, command := range []string{"encode", "decode"} {
		r := octavo(iotest.ErrReader(errors.New("unplugged")), command, "--format", "e4m3")
		require.Equal(t, result{1, "", "octavo: reading standard input: unplugged\n"}, r)

		var stderr bytes.Buffer
		status := run([]string{command, "--format", "e4m3"}, bytes.NewReader(make([]byte, 8)), brokenWriter{}, &stderr)
		require.Equal(t, 1, status)
		require.Equal(t, "octavo: writing standard output: no space\n", stderr.String())
	}
}

func TestEncodeUsage(t *testing.T) {
	fail(t, 2, `required flag(s) "format" not set (see octavo encode --help)`, "encode")
	fail(t, 2, `required flag(s) "format" not set (see octavo decode --help)`, "decode")
	fail(t, 2, `E4M3B11FNUZ or MXINT8`, "encode", "--format", "e3m3")
	fail(t, 2, `invalid argument "wrap" for "--overflow" flag: want saturate or nonfinite`, "encode", "--format", "e4m3", "--overflow", "wrap")
	fail(t, 2, `want saturate or propagate`, "encode", "--format", "e4m3", "--inf", "")
	fail(t, 2, `want keep-sign or canonical`, "encode", "--format", "e4m3", "--nan", "payload")
	fail(t, 2, `want nearest or zero or stochastic`, "encode", "--format", "e4m3", "--round", "up")
	fail(t, 2, `want a whole number from 0 to 18446744073709551615`, "encode", "--format", "e4m3", "--round", "stochastic", "--seed", "-1")
	fail(t, 2, `--seed is for --round stochastic only`, "encode", "--format", "e4m3", "--seed", "1")
	fail(t, 2, `unknown flag: --seed`, "decode", "--format", "e4m3", "--seed", "1")
	fail(t, 2, `flag needs an argument: --format`, "decode", "--format")
	fail(t, 2, `want no arguments, there is "values.f32"`, "encode", "--format", "e4m3", "values.f32")
}

func hex(text string) (b []byte) {
	for _, h := range strings.Fields(text) {
		n, _ := strconv.ParseUint(h, 16, 8)
		b = append(b, byte(n))
	}
	return b
}
