package layers

import (
	"context"

	"github.com/octavo-fp8/octavo/parallel/collective"
)

// Routes say to which experts the tokens of a rank go: TopK each, different ones, in the
// order in which their results are added, with weights.
type Routes struct {
	TopK    int
	Experts []int     // [tokens, TopK]; Dropped: none
	Weights []float32 // [tokens, TopK]
}

// Dropped is in [Routes] the place of an expert that had no room for the token: it is not
// sent there, and nothing is added for it.
const Dropped = -1

// ApplyExpert writes what an expert makes of x to y, both [rows, Cols].
type ApplyExpert func(expert int, y, x []float32, rows int) error

// Experts are on ranks in consecutive ranges: rank r of R has those from r·Count/R up to
// (r+1)·Count/R. Tokens go to them in one format and results come back in another: one
// loses little, since an expert quantizes its input anyway, while the other is rounded
// where results are added to the residual stream (DeepSeek-V3 sends back BF16, arXiv
// 2412.19437, section 3.3.3).
type Experts struct {
	Count int

	// Dispatch and Combine are how rows of Cols go there and back: their Wire, Cols, Name
	// and Reporter. A message is all rows from one rank to another.
	Dispatch, Combine collective.Exchange

	// CombineGradient and DispatchGradient are how gradients go the way back: of results, a
	// row for each rank that a token was sent to, and then of tokens, as many rows as there
	// were results. Cols 0 are those of Dispatch. The zero values send FP32.
	CombineGradient, DispatchGradient collective.Exchange

	// SumAtSource has a rank add the weighted results of its experts for a token, in FP32,
	// and send back one row, as DeepEP does in its normal mode; rows are added in the order
	// of ranks, so that the bits depend on how many ranks there are. Otherwise a row of
	// each expert comes back, and is weighted and added, in the order of Routes, where the
	// token is, as DeepEP does in its low-latency mode.
	SumAtSource bool

	// Apart has an expert compute the rows of each rank by themselves, in the order of ranks,
	// so that its amaxes and the gradient of its weights are those of one rank that does
	// one share of a batch after the other. Otherwise it has the rows of all at once, as
	// one rank has that does the whole batch.
	Apart bool
}

// Check returns an error, [collective.ErrInput], that names the first option that is out of range.
func (e *Experts) Check() error {
	for _, err := range []error{
		e.Dispatch.Check(), e.Combine.Check(), e.CombineGradient.Check(), e.DispatchGradient.Check(),
	} {
		if err != nil {
			return err
		}
	}
	if e.Count < 1 || e.Dispatch.Cols < 1 || e.Dispatch.Cols != e.Combine.Cols {
		return inputError("%d experts for rows of %d, which send back %d: want at least 1, and the same number",
			e.Count, e.Dispatch.Cols, e.Combine.Cols)
	}
	for _, x := range []*collective.Exchange{&e.CombineGradient, &e.DispatchGradient} {
		if x.Cols != 0 && x.Cols != e.Dispatch.Cols {
			return inputError("%q: gradients of rows of %d have %d columns: want 0, or the same number",
				x.Name, e.Dispatch.Cols, x.Cols)
		}
	}
	return nil
}

// rank returns the one that an expert is on.
func (e *Experts) rank(expert, ranks int) int {
	for r := range ranks {
		if expert < (r+1)*e.Count/ranks {
			return r
		}
	}
	return ranks - 1
}

func (e *Experts) checkRoutes(rank int, x []float32, routes Routes) error {
	tokens, cols := len(x)/e.Dispatch.Cols, e.Dispatch.Cols
	if len(x)%cols != 0 || routes.TopK < 1 || len(routes.Experts) != tokens*routes.TopK || len(routes.Weights) != len(routes.Experts) {
		return inputError("rank %d: %d elements, %d experts and %d weights are not %d tokens of %d with %d experts each",
			rank, len(x), len(routes.Experts), len(routes.Weights), tokens, cols, routes.TopK)
	}
	for i, expert := range routes.Experts {
		if expert != Dropped && (expert < 0 || expert >= e.Count) {
			return inputError("rank %d: token %d goes to expert %d: there are %d",
				rank, i/routes.TopK, expert, e.Count)
		}
	}
	return nil
}

// Send sends the rank's tokens x, [tokens, Cols], to experts, and writes the weighted
// sums of their results to y. apply is called for each expert of the rank that has rows,
// in ascending order, with those of all ranks in the order of ranks and tokens, or with
// [Experts.Apart] once for each rank. sendTokens is for those who need gradients.
func (e Experts) Send(r *collective.Rank, y, x []float32, routes Routes, apply ApplyExpert) error {
	sent, err := sendTokens(r, e, x, routes)
	if err != nil {
		return err
	}
	return sent.Forward(y, func(rows expertRows, y, x []float32) error {
		return apply(rows.Expert, y, x, rows.Rows)
	})
}

// asked is what one token wants of a rank: experts, with their weights and their places
// in Routes.
type asked struct {
	token   int
	experts []int
	weights []float32
	places  []int
}

// newAsked returns what a rank's tokens want, by rank: a token is there once for each rank
// that has experts of it.
func newAsked(e *Experts, ranks int, routes Routes) [][]asked {
	all := make([][]asked, ranks)
	for at, expert := range routes.Experts {
		if expert == Dropped {
			continue
		}
		token, j := at/routes.TopK, e.rank(expert, ranks)
		if n := len(all[j]); n == 0 || all[j][n-1].token != token {
			all[j] = append(all[j], asked{token: token})
		}
		a := &all[j][len(all[j])-1]
		a.experts, a.weights = append(a.experts, expert), append(a.weights, routes.Weights[at])
		a.places = append(a.places, at%routes.TopK)
	}
	return all
}

// askExperts tells all ranks what tokens want of them, and returns what is wanted of r:
// eight bytes for each expert of a token.
func askExperts(r *collective.Rank, e *Experts, mine [][]asked) ([][]asked, error) {
	about := collective.Subject{What: "routes", Name: e.Dispatch.Name}
	return collective.Swap(r, about, about.What, func(list []asked) (bytes int64) {
		for _, a := range list {
			bytes += 8 * int64(len(a.experts))
		}
		return bytes
	}, mine)
}

// rowsBack returns how many rows come back for what is asked.
func (e *Experts) rowsBack(list []asked) int {
	if e.SumAtSource {
		return len(list)
	}
	n := 0
	for _, a := range list {
		n += len(a.experts)
	}
	return n
}

// Forward does on as many ranks as there are slices of tokens what [Experts.Send] does, and
// returns the results of each rank.
func (e Experts) Forward(
	ctx context.Context, x [][]float32, routes []Routes, apply ApplyExpert,
) ([][]float32, collective.Traffic, error) {
	if len(x) != len(routes) {
		return nil, nil, inputError("tokens of %d ranks and routes of %d", len(x), len(routes))
	}
	y := make([][]float32, len(x))
	traffic, err := collective.Run(ctx, len(x), func(r *collective.Rank) error {
		y[r.ID()] = make([]float32, len(x[r.ID()]))
		return e.Send(r, y[r.ID()], x[r.ID()], routes[r.ID()], apply)
	})
	return y, traffic, err
}
