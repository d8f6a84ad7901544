package collective

import (
	"strings"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/random"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// wireKind is what a [Wire] sends for a value.
type wireKind uint8

const (
	kindFP32  wireKind = iota // four bytes
	kindBF16                  // two bytes, rounded to nearest even
	kindCoded                 // a code, and scales for blocks of them
	kindCast                  // a code of the value as it is, without scales
)

// Wire is the form in which values are sent. The zero Wire is FP32, and loses nothing.
// Others are those of [ParseWire] and [Coded]. Wires are comparable.
type Wire struct {
	kind wireKind

	// Recipe is that of codes: just in time, from the message's own amaxes unless an
	// [Exchange] shares them. A message is a tensor of its own, [rows, cols], whose
	// blocks begin where it begins. Rounding at random is new in each message of an exchange,
	// and in exchanges of other names; in each step with [Wire.InStep]. Of Cast, only the format and the policy count.
	Recipe scaling.Recipe
}

// named are the wires that have names.
var named = []struct {
	name string
	wire Wire
}{
	{"fp32", Wire{}},
	{"bf16", Wire{kind: kindBF16}},
	{"e4m3-tensor", coded(scaling.TEBlock, fp8.E4M3, 0, 0)},
	{"e4m3-token", coded(scaling.TEBlock, fp8.E4M3, 1, 0)},
	{"e4m3-cast", Wire{kind: kindCast, Recipe: coded(scaling.TEBlock, fp8.E4M3, 0, 0).Recipe}},
	{"e4m3-block", coded(scaling.TEBlock, fp8.E4M3, 1, 128)},
	{"e4m3-block-pow2", coded(scaling.TEBlockPow2, fp8.E4M3, 1, 128)},
	{"e5m2-tensor", coded(scaling.TEBlock, fp8.E5M2, 0, 0)},
	{"e5m2-token", coded(scaling.TEBlock, fp8.E5M2, 1, 0)},
	{"e5m2-block", coded(scaling.TEBlock, fp8.E5M2, 1, 128)},
	{"mxfp8", coded(scaling.MXRCeil, fp8.E4M3, 1, 32)},
	{"mxfp8-e5m2", coded(scaling.MXRCeil, fp8.E5M2, 1, 32)},
	{"mxfp4", coded(scaling.MXRCeil, fp8.E2M1, 1, 32)},
	{"nvfp4", coded(scaling.NVFP4TE, fp8.E2M1, 1, 16)},
}

// coded returns a wire that keeps what is not finite so, where its format can.
func coded(p scaling.Profile, f fp8.Format, rows, cols int) Wire {
	return Coded(scaling.Recipe{
		Profile: p, Format: f, Block: tensor.Block{Rows: rows, Cols: cols}, Policy: fp8.Policy{Inf: fp8.InfPropagate},
	})
}

// Coded returns the wire of a recipe.
func Coded(r scaling.Recipe) Wire { return Wire{kind: kindCoded, Recipe: r} }

// wireNames returns the names that [ParseWire] knows.
func wireNames() (names []string) {
	for _, n := range named {
		names = append(names, n.name)
	}
	return names
}

// ParseWire returns the wire of the given name, in any case: fp32, bf16, or a format such as
// e4m3 and what has a scale, as in e4m3-block. A scale belongs to a message (tensor), to a
// row of it (token), or to 128 values of a row (block); a cast has none.
func ParseWire(name string) (Wire, error) {
	for _, n := range named {
		if strings.EqualFold(n.name, name) {
			return n.wire, nil
		}
	}
	return Wire{}, inputError("unknown wire %q: want one of %s", name, strings.Join(wireNames(), ", "))
}

// String returns the name of w or, if it has none, its recipe.
func (w Wire) String() string {
	for _, n := range named {
		if n.wire == w {
			return n.name
		}
	}
	if w.kind == kindCast {
		return "cast to " + w.Recipe.Format.String()
	}
	return w.Recipe.String()
}

// MarshalText implements [encoding.TextMarshaler] for wires that have a name.
func (w Wire) MarshalText() ([]byte, error) {
	if _, err := ParseWire(w.String()); err != nil {
		return nil, err
	}
	return []byte(w.String()), nil
}

// UnmarshalText implements [encoding.TextUnmarshaler] by [ParseWire].
func (w *Wire) UnmarshalText(text []byte) error {
	parsed, err := ParseWire(string(text))
	if err == nil {
		*w = parsed
	}
	return err
}

// InStep returns the wire with random numbers of its own in a step.
func (w Wire) InStep(step uint64) Wire {
	if w.Recipe.Policy.Rounding == fp8.Stochastic {
		w.Recipe.Policy.Seed = random.Hash(w.Recipe.Policy.Seed, step, 1)
	}
	return w
}

// Check returns an error, [ErrInput], unless w can be used.
func (w Wire) Check() error {
	if w.kind != kindCoded && w.kind != kindCast {
		return nil
	}
	if err := w.Recipe.Check(); err != nil {
		return inputError("a wire: %w", err)
	}
	if w.Recipe.Profile.Delayed() {
		return inputError("a wire of the recipe %v: a message has no history: take a recipe that is just in time",
			w.Recipe)
	}
	return nil
}

// Bytes returns the size of a message of rows of cols values: codes without gaps, and
// their scales.
func (w Wire) Bytes(rows, cols int) int64 {
	n := int64(rows) * int64(cols)
	switch w.kind {
	case kindBF16:
		return 2 * n
	case kindCast:
		return int64(tensor.PackedLen(rows*cols, w.Recipe.Format.Bits()))
	case kindCoded:
		return w.codedBytes(rows, cols)
	}
	return 4 * n
}

func (w Wire) codedBytes(rows, cols int) int64 {
	r := w.Recipe
	bytes := int64(tensor.PackedLen(rows*cols, r.Format.Bits()))
	gridRows, gridCols := r.Block.Grid(rows, cols)
	scale := int64(4)
	if r.Profile.ScaleFormat().Encoded() {
		scale = 1
	}
	bytes += scale * int64(gridRows) * int64(gridCols)
	switch {
	case !r.Profile.Outer():
	case r.Profile == scaling.NVFP4TERow && r.OuterRows == 0:
		bytes += 4 * int64(rows)
	case r.OuterRows > 0:
		bytes += 4 * int64((rows+r.OuterRows-1)/r.OuterRows)
	default:
		bytes += 4
	}
	return bytes
}
