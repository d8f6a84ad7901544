package comparison

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/octavo-fp8/octavo/cmd/internal/policytext"
	"github.com/octavo-fp8/octavo/nn"
)

// Budget is the memory that activations may take: a share of what all of them take in FP32,
// or a number of bytes. The zero value is none: all that is to be kept is.
type Budget struct {
	text  string
	share float64 // 0: bytes hold
	bytes int64
}

var budgetUnits = []struct {
	suffix string
	bytes  float64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"", 1}}

// ParseBudget reads a budget such as 30%, 512MiB or 4000000.
func ParseBudget(text string) (Budget, error) {
	bad := errors.New("want a share of what all activations take, above 0% and at most 100%, " +
		"or bytes, such as 64MiB")
	if number, ok := strings.CutSuffix(text, "%"); ok {
		x, err := strconv.ParseFloat(number, 64)
		if err != nil || !(x > 0 && x <= 100) {
			return Budget{}, bad
		}
		return Budget{text: text, share: x / 100}, nil
	}
	for _, u := range budgetUnits {
		number, ok := strings.CutSuffix(text, u.suffix)
		if !ok {
			continue
		}
		x, err := strconv.ParseFloat(number, 64)
		if err != nil || !(x > 0 && x*u.bytes <= math.MaxInt64/2) {
			return Budget{}, bad
		}
		return Budget{text: text, bytes: int64(x * u.bytes)}, nil
	}
	return Budget{}, bad
}

// String returns the text that ParseBudget reads, "" of none.
func (b Budget) String() string { return b.text }

// MarshalText implements [encoding.TextMarshaler].
func (b Budget) MarshalText() ([]byte, error) { return []byte(b.text), nil }

// of returns the bytes of a budget where all activations take so many.
func (b Budget) of(all int64) int64 {
	if b.share > 0 {
		return int64(b.share * float64(all))
	}
	return b.bytes
}

// Activations is the memory of a model's activations in training.
type Activations struct {
	Model string `json:"model"`
	nn.ActivationPlan
	Bytes int64 `json:"bytes"` // all of them
	All   int64 `json:"all"`   // were all kept in FP32
}

// String says what is kept and what that costs, in a sentence.
func (a Activations) String() string {
	return fmt.Sprintf("%s activations take %s, %.1f %% of %s; "+
		"%.1f %% of a step's operations are done again. %s.",
		a.Model, mebibytes(a.Bytes), 100*float64(a.Bytes)/float64(a.All), mebibytes(a.All),
		100*float64(a.Again)/float64(a.Step), policytext.Of(a.Policies))
}

func mebibytes(n int64) string { return fmt.Sprintf("%.2f MiB", float64(n)/(1<<20)) }

// fit gives a configuration the policies that keep to the budget, if there is one.
func (r *Result) fit(model string, cfg *nn.Config) error {
	o := r.Options
	if o.Budget == (Budget{}) {
		return nil
	}
	whole := *cfg
	whole.Activations = nn.ActivationsFP32
	all, err := whole.PlanActivations(o.Batch, o.Context)
	if err != nil {
		return err
	}
	plan, err := cfg.SearchPolicies(o.Batch, o.Context, o.Budget.of(all.Total()))
	if least := new(nn.BudgetError); errors.As(err, &least) {
		return fmt.Errorf("--activation-budget %v is %d bytes: activations of the %s model take "+
			"at least %d, %.1f %% of the %d that all of them take",
			o.Budget, least.Budget, r.Called(model), least.Least,
			100*float64(least.Least)/float64(all.Total()), all.Total())
	}
	if err != nil {
		return err
	}
	cfg.Policies = plan.Policies
	r.Activations = append(r.Activations,
		Activations{r.Called(model), plan, plan.Total(), all.Total()})
	return nil
}
