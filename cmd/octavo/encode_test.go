package main

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/filetest"
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
	for _, f := range fp8.Formats() {
		codes := make([]byte, 1<<f.Bits())
		for i := range codes {
			codes[i] = byte(i)
		}
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
				if f.IsNaN(c) {
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
	help := succeed(t, "encode", "--help")
	names := make([]string, 0, len(fp8.Formats())+2)
	for _, f := range fp8.Formats() {
		names = append(names, strings.ToLower(f.String()))
	}
	names = append(names, "e8m0", "ue4m3")
	for _, name := range names {
		require.Contains(t, help, "\n  "+name+" ", "help/kinds.txt lacks a row")
	}
	fail(t, 2, `required flag(s) "format" not set: --format takes e4m3, e5m2, e4m3fnuz, e5m2fnuz, e2m1, e2m3, e3m2, e4m3ieee, e3m4, e4m3b11fnuz, mxint8, e8m0, ue4m3 (see octavo encode --help)`, "encode")
	fail(t, 2, `required flag(s) "format" not set: --format takes e4m3, e5m2, e4m3fnuz, e5m2fnuz, e2m1, e2m3, e3m2, e4m3ieee, e3m4, e4m3b11fnuz, mxint8, e8m0, ue4m3 (see octavo decode --help)`, "decode")
	fail(t, 2, "want "+strings.Join(names, ", "), "encode", "--format", "e3m3")
	fail(t, 2, `invalid argument "wrap" for "--overflow" flag: want saturate or nonfinite`, "encode", "--format", "e4m3", "--overflow", "wrap")
	fail(t, 2, `want saturate or propagate`, "encode", "--format", "e4m3", "--inf", "")
	fail(t, 2, `want keep-sign or canonical or zero or opposite-zero`, "encode", "--format", "e4m3", "--nan", "payload")
	fail(t, 2, `only e8m0 is rounded up or down`, "encode", "--format", "e4m3", "--round", "up")
	fail(t, 2, `want a whole number from 0 to 18446744073709551615`, "encode", "--format", "e4m3", "--round", "stochastic", "--seed", "-1")
	fail(t, 2, `--seed is for --round stochastic only`, "encode", "--format", "e4m3", "--seed", "1")
	fail(t, 2, `unknown flag: --seed`, "decode", "--format", "e4m3", "--seed", "1")
	fail(t, 2, `flag needs an argument: --format`, "decode", "--format")
	fail(t, 2, `want no arguments, there is "values.f32"`, "encode", "--format", "e4m3", "values.f32")
}

// TestEncodeNarrow checks codes of less than a byte, scales and what knobs do to them,
// against values that were looked up.
func TestEncodeNarrow(t *testing.T) {
	negativeZero := float32(math.Copysign(0, -1))
	values := filetest.FloatBytes(0, negativeZero, 0.5, -0.2, 0.75, 2.5, 5, 7, -100, nan, inf(-1), 1.26)
	for flags, want := range map[string]string{
		"--format e2m1": "00 08 01 08 02 04 06 07 0F 07 0F 03",
		"--format e2m1 --round nearest-toward-zero":     "00 08 01 08 01 04 06 07 0F 07 0F 03",
		"--format e2m1 --zero unsigned --nan zero":      "00 00 01 00 02 04 06 07 0F 00 0F 03",
		"--format e2m1 --zero positive":                 "00 00 01 08 02 04 06 07 0F 07 0F 03",
		"--format e2m1 --nan opposite-zero":             "00 08 01 08 02 04 06 07 0F 08 0F 03",
		"--format E2M3":                                 "00 20 04 22 06 12 1A 1E 3F 1F 3F 0A",
		"--format e3m2":                                 "00 20 08 23 0A 11 15 17 3F 1F 3F 0D",
		"--format mxint8":                               "00 00 20 F3 30 7F 7F 7F 80 7F 80 51",
		"--format e2m1 --packed":                        "80 81 42 76 7F 3F",
		"--format e2m3 --packed":                        "00 48 88 86 A4 79 FF F7 2B",
		"--format e4m3ieee --overflow nonfinite":        "00 80 30 A5 34 42 4A 4E EC 7C F7 3A",
		"--format e3m4":                                 "00 80 20 8D 28 44 54 5C EF 78 EF 34",
		"--format e4m3b11fnuz --inf propagate":          "00 00 50 C5 54 62 6A 6E FF 80 80 5A",
		"--format ue4m3":                                "00 00 30 00 34 42 4A 4E 00 7F 00 3A",
		"--format e8m0":                                 "00 00 7E 7D 7F 80 81 82 86 FF FE 7F",
		"--format e8m0 --round up --overflow nonfinite": "00 00 7E 7D 7F 81 82 82 86 FF FF 80",
		"--format binary4p2se":                          "00 00 02 09 03 06 06 06 0E 08 0E 05",
		"--format e8m0 --round down":                    "00 00 7E 7C 7E 80 81 81 85 FF FE 7F",
	} {
		r := octavo(bytes.NewReader(values), append([]string{"encode"}, strings.Fields(flags)...)...)
		require.Equal(t, 0, r.status, "%s: %s", flags, r.stderr)
		require.Equal(t, fmt.Sprintf("% X", hex(want)), fmt.Sprintf("% X", r.stdout), flags)
	}
	for flags, want := range map[string]string{
		"--format e8m0 --round stochastic": "--format e8m0: e8m0 is rounded to nearest, up or down",
		"--format ue4m3 --nan canonical":   "--format ue4m3: ue4m3 is rounded to nearest, ties to even, and saturates: it takes no other policy",
		"--format e2m1 --round down":       "--format e2m1: only e8m0 is rounded up or down",
	} {
		fail(t, 2, want, append([]string{"encode"}, strings.Fields(flags)...)...)
	}
}

// TestPacked encodes and decodes streams of many lengths side by side.
func TestPacked(t *testing.T) {
	for name, group := range map[string]int{"e2m1": 2, "e2m3": 4, "e3m2": 4, "e4m3": 1, "ue4m3": 1} {
		var values []float32
		for i := range 2*chunk + 8 {
			values = append(values, float32(i%13)/2)
		}
		for _, n := range []int{0, group, chunk - group, chunk, chunk + group, 2*chunk + 8} {
			in := filetest.FloatBytes(values[:n]...)
			plain := octavo(bytes.NewReader(in), "encode", "--format", name)
			packed := octavo(iotest.HalfReader(bytes.NewReader(in)), "encode", "--format", name, "--packed")
			require.Equal(t, []int{0, 0}, []int{plain.status, packed.status}, packed.stderr)
			want := octavo(strings.NewReader(plain.stdout), "decode", "--format", name)
			got := octavo(iotest.HalfReader(strings.NewReader(packed.stdout)), "decode", "--format", name, "--packed")
			require.Equal(t, 0, got.status, got.stderr)
			require.True(t, want.stdout == got.stdout, "%d of %s", n, name)
			if group == 2 {
				require.Len(t, packed.stdout, n/2)
			}
		}
	}
	r := octavo(bytes.NewReader(filetest.FloatBytes(1, 2, 3)), "encode", "--format", "e2m1", "--packed")
	require.Equal(t, result{1, "\x42", "octavo: standard input has 12 bytes, which is not a multiple of 8: packed codes of 4 bits fill whole bytes by 2\n"}, r)
	r = octavo(strings.NewReader("1234"), "decode", "--format", "e3m2", "--packed")
	require.Equal(t, 1, r.status)
	require.Len(t, r.stdout, 16)
	require.Equal(t, "octavo: standard input has 4 bytes, which is not a multiple of 3: packed codes of 6 bits fill whole bytes by 4\n", r.stderr)
}

// TestDecodeForeign names the first byte that is no code; what comes before it is decoded.
func TestDecodeForeign(t *testing.T) {
	for name, bits := range map[string]int{"e2m1": 4, "e2m3": 6, "ue4m3": 7} {
		in := append(make([]byte, chunk+5), byte(1<<bits|1), 0)
		r := octavo(bytes.NewReader(in), "decode", "--format", name)
		require.Equal(t, 1, r.status)
		require.Len(t, r.stdout, 4*(chunk+5))
		require.Equal(t, fmt.Sprintf("octavo: byte %#02x at %d of standard input is no code of %s, which has %d bits\n", 1<<bits|1, chunk+5, strings.ToUpper(name), bits), r.stderr)
	}
}

func hex(text string) (b []byte) {
	for _, h := range strings.Fields(text) {
		n, _ := strconv.ParseUint(h, 16, 8)
		b = append(b, byte(n))
	}
	return b
}
