package flash

import (
	"cmp"

	"github.com/octavo-fp8/octavo/internal/enum"
)

var (
	orders = enum.Enum[Order]{Type: "Order", What: "order of additions", Err: ErrKernel,
		Prefix: "flash",
		Names:  []string{"exact", "contract", "instruction"}}
	scalings = enum.Enum[Scaling]{Type: "Scaling", What: "place of the scales", Err: ErrKernel,
		Prefix: "flash",
		Names:  []string{"folded", "folded-left", "in-product"}}
	frames = enum.Enum[Frame]{Type: "Frame", What: "frame of the maximum", Err: ErrKernel,
		Prefix: "flash",
		Names:  []string{"separate", "fused", "raw", "raw-contracted", "lifted"}}
	methods = enum.Enum[Exp2Method]{Type: "Exp2Method", What: "exponential", Err: ErrKernel,
		Prefix: "flash",
		Names:  []string{"rounded", "flushed", "elementary"}}
	sums = enum.Enum[SumOrder]{Type: "SumOrder", What: "order of the sum of p", Err: ErrKernel,
		Prefix: "flash",
		Names:  []string{"exact", "lanes", "quads", "quad-tiles", "pairs"}}
	casts = enum.Enum[Cast]{Type: "Cast", What: "format of P", Err: ErrKernel, Prefix: "flash",
		Names: []string{"float32", "bf16", "fp16", "E4M3", "E5M2"}}
	endings = enum.Enum[Ending]{Type: "Ending", What: "ending", Err: ErrKernel, Prefix: "flash",
		Names: []string{"reciprocal-first", "quotient", "scale-last"}}
)

func (c Numerics) checkEnums() error {
	return cmp.Or(orders.Check(c.Scores.Order), orders.Check(c.Values.Order),
		casts.Check(c.P), casts.Check(c.Out))
}

func (k *Kernel) checkEnums() error {
	return cmp.Or(k.Numerics().checkEnums(),
		scalings.Check(k.Scores.Scaling), frames.Check(k.Scores.Frame),
		methods.Check(k.Exp2.Method), sums.Check(k.Sum), endings.Check(k.Ending))
}

// String returns a name such as "contract". UnmarshalText takes it in any case.
// An unknown order is an [ErrKernel].
func (o Order) String() string                   { return orders.String(o) }
func (o Order) MarshalText() ([]byte, error)     { return orders.MarshalText(o) }
func (o *Order) UnmarshalText(text []byte) error { return orders.UnmarshalText(o, text) }

// String returns a name such as "folded". UnmarshalText takes it in any case.
// An unknown place is an [ErrKernel].
func (s Scaling) String() string                   { return scalings.String(s) }
func (s Scaling) MarshalText() ([]byte, error)     { return scalings.MarshalText(s) }
func (s *Scaling) UnmarshalText(text []byte) error { return scalings.UnmarshalText(s, text) }

// String returns a name such as "fused". UnmarshalText takes it in any case.
// An unknown frame is an [ErrKernel].
func (f Frame) String() string                   { return frames.String(f) }
func (f Frame) MarshalText() ([]byte, error)     { return frames.MarshalText(f) }
func (f *Frame) UnmarshalText(text []byte) error { return frames.UnmarshalText(f, text) }

// String returns a name such as "rounded". UnmarshalText takes it in any case.
// An unknown method is an [ErrKernel].
func (m Exp2Method) String() string                   { return methods.String(m) }
func (m Exp2Method) MarshalText() ([]byte, error)     { return methods.MarshalText(m) }
func (m *Exp2Method) UnmarshalText(text []byte) error { return methods.UnmarshalText(m, text) }

// String returns a name such as "lanes". UnmarshalText takes it in any case.
// An unknown order is an [ErrKernel].
func (s SumOrder) String() string                   { return sums.String(s) }
func (s SumOrder) MarshalText() ([]byte, error)     { return sums.MarshalText(s) }
func (s *SumOrder) UnmarshalText(text []byte) error { return sums.UnmarshalText(s, text) }

// String returns a name such as "E4M3". UnmarshalText takes it in any case.
// An unknown format is an [ErrKernel].
func (c Cast) String() string                   { return casts.String(c) }
func (c Cast) MarshalText() ([]byte, error)     { return casts.MarshalText(c) }
func (c *Cast) UnmarshalText(text []byte) error { return casts.UnmarshalText(c, text) }

// String returns a name such as "quotient". UnmarshalText takes it in any case.
// An unknown ending is an [ErrKernel].
func (e Ending) String() string                   { return endings.String(e) }
func (e Ending) MarshalText() ([]byte, error)     { return endings.MarshalText(e) }
func (e *Ending) UnmarshalText(text []byte) error { return endings.UnmarshalText(e, text) }
