// Package sensitivity asks which class of operators needs how much precision: each alone in
// FP8 and in BF16, by gradients and by loss, beside the order that practice assumes.
package sensitivity

import (
	"context"
	_ "embed"
	"slices"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/lab"
	"github.com/octavo-fp8/octavo/lab/declaration"
	"github.com/octavo-fp8/octavo/lab/report"
	"github.com/octavo-fp8/octavo/lab/training"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/scaling"
)

//go:embed declaration.toml
var declarationFile []byte

// declared is what goals are judged by.
var declared = declaration.OnUse(declarationFile)

// Experiment is octavo lab sensitivity.
var Experiment = lab.Experiment{
	Name:  "sensitivity",
	Title: "Which operators need more than FP8?",
	Claim: "Products of linear layers are robust and can be in FP8. Embedding, output head, norms " +
		"and attention are sensitive and are kept " +
		"in BF16 or FP32 (DeepSeek-V3, arXiv 2412.19437, section 3.3.1), and so is the residual " +
		"stream between them; " +
		"sums are FP32 (torch.amp of PyTorch).",
	Declaration: declared,
	Measure:     measure,
}

func measure(ctx context.Context, o lab.Options, p *lab.Steps) (*report.Report, error) {
	s, seeds := studyOf(o), lab.Pick(o, 8, 2, 2)
	p.Expect(int64(seeds) * s.work())
	all, err := training.Seeds(ctx, o, seeds, func(ctx context.Context, o lab.Options) (found, error) { return s.seed(ctx, o, p) })
	if err != nil {
		return nil, err
	}
	r := &results{study: s, seeds: all}
	for shape := range s.config.Shapes() {
		r.params = append(r.params, shape.Name)
	}
	return r.report(), nil
}

// Formats that a class is computed in, by their index.
const (
	inFP8 = iota
	inBF16
)

var formats = []struct {
	name   string
	format nn.NarrowFormat
}{{"FP8", nn.NarrowE4M3}, {"BF16", nn.NarrowBF16}}

// arm is a model some of whose classes of operators are rounded.
type arm struct {
	name string
	use  func(*nn.Config)
}

// Arms by their index: FP32, then two of each class, then some of several classes.
const (
	fp32Arm  = 0
	firstArm = 1
)

// armOf is the index of a class in a format.
func armOf(class nn.OperatorClass, format int) int {
	return firstArm + len(formats)*slices.Index(nn.OperatorClasses(), class) + format
}

// Arms of several classes, by their index.
var (
	practiceArm = firstArm + len(formats)*len(nn.OperatorClasses())
	allFP8Arm   = practiceArm + 1
	fp4Arm      = practiceArm + 2
	cutArm      = practiceArm + 3
)

func arms() []arm {
	all := []arm{{"FP32", func(*nn.Config) {}}}
	for _, class := range nn.OperatorClasses() {
		for _, f := range formats {
			use := func(c *nn.Config) { class.Round(c, f.format) }
			all = append(all, arm{class.String() + " " + f.name, use})
		}
	}
	return append(all,
		arm{"practice", func(c *nn.Config) {
			for _, class := range nn.OperatorClasses() {
				if f := tierOf(class).format; f != "" {
					class.Round(c, f)
				}
			}
		}},
		arm{"all FP8", func(c *nn.Config) {
			for _, class := range nn.OperatorClasses() {
				class.Round(c, nn.NarrowE4M3)
			}
		}},
		arm{"products FP4", func(c *nn.Config) { nn.ClassProducts.Round(c, nn.NarrowE2M1) }},
		arm{"products cut off", func(c *nn.Config) {
			c.Rounding = &nn.Rounding{
				Input: cutOff(scaling.Input), Weight: cutOff(scaling.Weight),
				Gradient: cutOff(scaling.Gradient),
			}
		}},
	)
}

// cutOff rounds to E4M3 toward zero.
func cutOff(role scaling.Role) nn.Narrowing {
	r := scaling.Default(role)
	r.Policy.Rounding = fp8.TowardZero
	return nn.Narrowing{Recipe: &r}
}

// tier is what practice trusts a class with: the narrower, the less sensitive it takes it
// to be.
type tier struct {
	rank   int // 0: least sensitive
	name   string
	format nn.NarrowFormat
}

// tierOf returns the tier of a class. DeepSeek-V3 (arXiv 2412.19437, section 3.3.1)
// multiplies in FP8 and keeps embedding, head, norms and attention in BF16 or FP32; sums
// are FP32 where all else is BF16 (autocast of PyTorch, Transformer Engine).
func tierOf(class nn.OperatorClass) tier {
	switch class {
	case nn.ClassProducts:
		return tier{0, "FP8", nn.NarrowE4M3}
	case nn.ClassReductions:
		return tier{2, "FP32", ""}
	}
	return tier{1, "BF16", nn.NarrowBF16}
}

// pair is of classes of which practice takes the first to be more sensitive.
type pair struct{ more, less nn.OperatorClass }

func (p pair) String() string { return p.more.String() + "-over-" + p.less.String() }

// pairs are all whose tiers differ.
func pairs() (all []pair) {
	for _, more := range nn.OperatorClasses() {
		for _, less := range nn.OperatorClasses() {
			if tierOf(more).rank > tierOf(less).rank {
				all = append(all, pair{more, less})
			}
		}
	}
	return all
}
