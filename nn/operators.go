package nn

import (
	"fmt"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/canonical"
	"github.com/octavo-fp8/octavo/internal/enum"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/internal/rounding"
)

// Operators rounds what classes of operators other than the products of linear layers
// compute, to see what each is worth: training that holds them in a narrow format would
// compute this. An empty format leaves a class in FP32, and so the zero Operators all.
//
// Values are rounded to nearest even and stay float32, so that no memory is saved. BF16 has
// no scale. Other formats have one for each 128 values of a row, short at its end: the
// largest power of two that carries none past the largest number, just in time, as the
// operands of a [DefaultRounding] have. A row is what belongs to one position, and of
// softmax one row of one head.
//
// The backward pass rounds the gradients that an operator gives in the same way, and takes
// a rounding itself for the identity: each gradient is that of the operator without it, of
// operands that were rounded where the forward pass rounded them.
type Operators struct {
	// Reductions are the sums along a row in norms, in the softmax of attention, and in
	// the softmax of a Llama's loss: of squares, of exponentials, and of the products with
	// gradients in their backward passes. Terms are FP32, and each FP32 sum of two is
	// rounded once more, to the bits of the format's mantissa, with the exponents of
	// float32, as if it had a scale of its own; the order is that of FP32. A sum that is
	// large beside its terms so stops growing: in E4M3 at 16 equal ones.
	Reductions NarrowFormat `json:"reductions,omitempty"`

	// Normalization are the results of RMSNorm, and the gradients of its inputs. Its
	// sums and 1/r are FP32, and so are gains and their gradients.
	Normalization NarrowFormat `json:"normalization,omitempty"`

	// Softmax are the probabilities of attention, as they are multiplied by values in both
	// passes, and the gradients of scores, as they are multiplied by keys and by queries.
	Softmax NarrowFormat `json:"softmax,omitempty"`

	// Embedding are the rows that are looked up, and the gradients that are added to
	// those of the table.
	Embedding NarrowFormat `json:"embedding,omitempty"`

	// Head has the output head of a Llama multiply operands as [DefaultRounding] of the
	// format says, in all three products. The softmax of the loss is FP32.
	Head NarrowFormat `json:"head,omitempty"`

	// Residual is the residual stream after each addition, two in a block, and its gradient
	// after each.
	Residual NarrowFormat `json:"residual,omitempty"`
}

// fields returns the formats by the names of their fields.
func (o *Operators) fields() []operatorField {
	return []operatorField{
		{"Reductions", &o.Reductions}, {"Normalization", &o.Normalization}, {"Softmax", &o.Softmax},
		{"Embedding", &o.Embedding}, {"Head", &o.Head}, {"Residual", &o.Residual},
	}
}

type operatorField struct {
	name   string
	format *NarrowFormat
}

// check returns an error that names the first format that there is not.
func (o Operators) check(what string) error {
	for _, f := range o.fields() {
		if *f.format == "" {
			continue
		}
		if _, err := f.format.number(); err != nil {
			return configError("%s.Operators.%s: %w", what, f.name, err)
		}
	}
	return nil
}

// OperatorClass is a class of a model's operators.
type OperatorClass uint8

const (
	ClassProducts OperatorClass = iota // of linear layers, Config.Rounding
	ClassReductions
	ClassNormalization
	ClassSoftmax
	ClassEmbedding
	ClassHead
	ClassResidual
)

var operatorClasses = enum.Enum[OperatorClass]{
	Type: "OperatorClass", What: "class of operators", Err: ErrConfig, Prefix: "nn",
	Names: []string{"products", "reductions", "normalization", "softmax", "embedding", "head", "residual"},
}

// OperatorClasses returns all classes, in a fixed order.
func OperatorClasses() []OperatorClass {
	return []OperatorClass{
		ClassProducts, ClassReductions, ClassNormalization, ClassSoftmax,
		ClassEmbedding, ClassHead, ClassResidual,
	}
}

// String returns the text of c, such as "softmax".
func (c OperatorClass) String() string               { return operatorClasses.String(c) }
func (c OperatorClass) MarshalText() ([]byte, error) { return operatorClasses.MarshalText(c) }
func (c *OperatorClass) UnmarshalText(text []byte) error {
	return operatorClasses.UnmarshalText(c, text)
}

// Round makes cfg compute a class in a format and leaves the others as they are: by
// [DefaultRounding] in Config.Rounding where they are products, which takes the place of
// FP8, and by a field of Config.Operators otherwise. It panics if the class is unknown.
func (c OperatorClass) Round(cfg *Config, f NarrowFormat) {
	if c == ClassProducts {
		r := DefaultRounding(f)
		cfg.Rounding, cfg.FP8 = &r, nil
		return
	}
	*cfg.Operators.fields()[c-1].format = f
}

// resultRounder rounds what an operator computed, in place. Nil leaves it as it is.
type resultRounder struct {
	bf16    bool
	lattice rounding.Lattice
	workers int
}

// newResultRounder returns nil for FP32. The format must be one that there is.
func newResultRounder(f NarrowFormat, workers int) *resultRounder {
	switch f {
	case "":
		return nil
	case NarrowBF16:
		return &resultRounder{bf16: true, workers: workers}
	}
	return &resultRounder{lattice: f.mustNumber().Lattice(), workers: workers}
}

// RoundRows rounds rows of so many values as [Operators] round what they compute: the zero
// format leaves them. It panics if f is no format, or values are not rows.
func (f NarrowFormat) RoundRows(values []float32, cols, workers int) {
	if cols < 1 || len(values)%cols != 0 {
		panic("nn: NarrowFormat.RoundRows of values that are not rows")
	}
	newResultRounder(f, workers).round(values, cols)
}

// round rounds rows of so many values.
func (r *resultRounder) round(values []float32, cols int) {
	if r == nil || len(values) == 0 {
		return
	}
	parallel.For(len(values)/cols, max(elementGrain/cols, 1), r.workers, func(lo, hi int) {
		for row := lo; row < hi; row++ {
			r.roundRow(values[row*cols:][:cols])
		}
	})
}

// resultTile is the number of values that share a scale.
const resultTile = 128

func (r *resultRounder) roundRow(row []float32) {
	switch {
	case r == nil:
		return
	case r.bf16:
		rounding.NearestBF16(row, row)
		return
	}
	for len(row) > 0 {
		tile := row[:min(resultTile, len(row))]
		amax, _ := fp8.Amax(tile)
		rounding.Nearest(tile, tile, &r.lattice, blockScale(r.lattice.Max, amax, false))
		row = row[len(tile):]
	}
}

// sums adds up in a format of so many bits of mantissa. The zero value is FP32.
type sums struct{ mantissa int }

func newSums(f NarrowFormat) sums {
	if f == "" {
		return sums{}
	}
	return sums{f.mustNumber().Mantissa}
}

// add returns a+b.
func (s sums) add(a, b float32) float32 {
	if s.mantissa == 0 {
		return a + b
	}
	return number.RoundMantissa(a+b, s.mantissa)
}

// total adds values to sum, in order.
func (s sums) total(sum float32, values []float32) float32 {
	if s.mantissa == 0 {
		for _, v := range values {
			sum += v
		}
		return sum
	}
	for _, v := range values {
		sum = s.add(sum, v)
	}
	return sum
}

// dot returns the dot product of a and b[:len(a)], in the order of package canonical.
func (s sums) dot(a, b []float32) (p float32) {
	if s.mantissa == 0 {
		return canonical.Dot(a, b)
	}
	for lo := 0; lo < len(a); lo += canonical.Chunk {
		var halves [2]float32
		for i := lo; i < min(lo+canonical.Chunk, len(a)); i++ {
			half := &halves[(i-lo)%2]
			*half = s.add(*half, float32(a[i]*b[i]))
		}
		p = s.add(p, s.add(halves[0], halves[1]))
	}
	return p
}

// String lists what is rounded, such as "softmax E4M3", and says FP32 if nothing is.
func (o Operators) String() string {
	text := ""
	for i, f := range o.fields() {
		if *f.format != "" {
			text += fmt.Sprintf(", %v %s", OperatorClass(i+1), *f.format)
		}
	}
	if text == "" {
		return "FP32"
	}
	return text[len(", "):]
}
