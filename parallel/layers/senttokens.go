package layers

import (
	"github.com/octavo-fp8/octavo/internal/canonical"
	"github.com/octavo-fp8/octavo/parallel/collective"
)

// expertRows are rows that an expert computes: those of the tokens of one rank, or, with From
// allRanks, of all.
type expertRows struct{ Expert, From, Rows int }

// allRanks is in expertRows in place of a rank.
const allRanks = -1

// sentTokens are tokens of a rank that are with the experts, and those of all ranks that are
// with the rank's own: what the backward pass needs. Not safe for concurrent use; all ranks
// call its methods together.
type sentTokens struct {
	r      *collective.Rank
	e      Experts
	routes Routes
	size   int // of the rank's tokens

	mine     [][]asked   // by rank, what the rank's tokens want of it
	asked    [][]asked   // by rank, what its tokens want of this one
	received [][]float32 // by rank, its tokens
	results  [][]float32 // by rank, a row for each expert of a token, not weighted
	back     [][]float32 // by rank, what came back from it
}

// sendTokens sends the rank's tokens x, [tokens, Cols], to experts: the first half of
// [Experts.Send]. What it returns keeps copies.
func sendTokens(r *collective.Rank, e Experts, x []float32, routes Routes) (*sentTokens, error) {
	if err := e.Check(); err != nil {
		return nil, err
	}
	if err := e.checkRoutes(r.ID(), x, routes); err != nil {
		return nil, err
	}
	e.CombineGradient.Cols, e.DispatchGradient.Cols = e.Dispatch.Cols, e.Dispatch.Cols
	s := &sentTokens{r: r, e: e, size: len(x), routes: Routes{
		routes.TopK, append([]int(nil), routes.Experts...), append([]float32(nil), routes.Weights...),
	}}
	s.mine = newAsked(&e, r.Ranks(), s.routes)
	var err error
	if s.asked, err = askExperts(r, &e, s.mine); err != nil {
		return nil, err
	}
	s.received, err = s.toExperts(e.Dispatch, x)
	return s, err
}

// toExperts sends rows of tokens, one to each rank that has experts of it, and returns what
// comes, by rank.
func (s *sentTokens) toExperts(x collective.Exchange, rows []float32) ([][]float32, error) {
	cols := s.e.Dispatch.Cols
	out, in := make([][]float32, len(s.mine)), make([][]float32, len(s.asked))
	for j, list := range s.mine {
		for _, a := range list {
			out[j] = append(out[j], rows[a.token*cols:(a.token+1)*cols]...)
		}
	}
	for i, list := range s.asked {
		in[i] = make([]float32, len(list)*cols)
	}
	return in, s.r.AllToAll(x, in, out)
}

// fromExperts is the way back: of rows of each expert of a token, or of their sums.
func (s *sentTokens) fromExperts(x collective.Exchange, rows [][]float32) ([][]float32, error) {
	back := make([][]float32, len(s.mine))
	for j, list := range s.mine {
		back[j] = make([]float32, s.e.rowsBack(list)*s.e.Dispatch.Cols)
	}
	return back, s.r.AllToAll(x, back, rows)
}

// Forward has the experts compute and writes the weighted sums of what comes back to y,
// which is as long as the tokens. apply writes what an expert makes of x to y, both
// [rows.Rows, Cols], for each expert of the rank that has rows, in ascending order.
func (s *sentTokens) Forward(y []float32, apply func(rows expertRows, y, x []float32) error) error {
	if len(y) != s.size {
		return inputError("rank %d: results of %d elements for %d", s.r.ID(), len(y), s.size)
	}
	tokens := s.choices(s.received, nil)
	results, err := s.compute(tokens, func(rows expertRows, y []float32, choices []choice) error {
		return apply(rows, y, s.rowsOf(tokens, choices))
	})
	if err != nil {
		return err
	}
	s.results = results
	if s.e.SumAtSource {
		results = s.sums(results, true)
	}
	if s.back, err = s.fromExperts(s.e.Combine, results); err != nil {
		return err
	}
	s.combine(y, s.back, s.routes.Weights)
	return nil
}

// Backward follows Forward. It takes the gradient dy of what that wrote, and writes those of
// the tokens to dx and of the weights of routes to dWeights, [tokens, TopK], of which those
// that are Dropped are 0. apply writes to dx the gradient of what an expert was given, x,
// where dy is that of what it made of it, and may come in another order of ranks than
// Forward's calls did: an expert that remembers one forward pass must do it again for x.
func (s *sentTokens) Backward(
	dx, dWeights, dy []float32, apply func(rows expertRows, dx, dy, x []float32) error,
) error {
	received, err := s.toExperts(s.e.CombineGradient, dy)
	if err != nil {
		return err
	}
	if err := s.weightGradients(dWeights, dy, received); err != nil {
		return err
	}
	tokens := s.choices(s.received, nil)
	gradients := s.choices(received, func(a asked, k int) float32 { return a.weights[k] })
	rows, err := s.compute(tokens, func(rows expertRows, dx []float32, choices []choice) error {
		return apply(rows, dx, s.rowsOf(gradients, choices), s.rowsOf(tokens, choices))
	})
	if err != nil {
		return err
	}
	if s.e.SumAtSource {
		rows = s.sums(rows, false)
	}
	back, err := s.fromExperts(s.e.DispatchGradient, rows)
	if err != nil {
		return err
	}
	s.combine(dx, back, nil)
	return nil
}

// choice is the row of an expert of a token, by the token's rank and the place among its
// rows.
type choice struct{ rank, place int }

// choices returns, by rank, a row for each expert of a token, times a weight unless weight
// is nil.
func (s *sentTokens) choices(rows [][]float32, weight func(a asked, k int) float32) [][]float32 {
	cols := s.e.Dispatch.Cols
	all := make([][]float32, len(s.asked))
	for i, list := range s.asked {
		for at, a := range list {
			row := rows[i][at*cols : (at+1)*cols]
			for k := range a.experts {
				first := len(all[i])
				if all[i] = append(all[i], row...); weight != nil {
					multiply(all[i][first:], weight(a, k))
				}
			}
		}
	}
	return all
}

// rowsOf returns rows of choices, one after the other.
func (s *sentTokens) rowsOf(rows [][]float32, choices []choice) (list []float32) {
	cols := s.e.Dispatch.Cols
	for _, c := range choices {
		list = append(list, rows[c.rank][c.place*cols:(c.place+1)*cols]...)
	}
	return list
}

// compute calls f for each expert of the rank that has choices, which writes rows of them to
// y, and returns these as choices are.
func (s *sentTokens) compute(
	like [][]float32, f func(rows expertRows, y []float32, choices []choice) error,
) ([][]float32, error) {
	type key struct{ expert, from int }
	lists := map[key][]choice{}
	made := make([][]float32, len(like))
	for i, list := range s.asked {
		made[i] = make([]float32, len(like[i]))
		from, place := allRanks, 0
		if s.e.Apart {
			from = i
		}
		for _, a := range list {
			for _, expert := range a.experts {
				lists[key{expert, from}] = append(lists[key{expert, from}], choice{i, place})
				place++
			}
		}
	}
	cols := s.e.Dispatch.Cols
	for expert := range s.e.Count {
		for from := allRanks; from < len(like); from++ {
			choices := lists[key{expert, from}]
			if len(choices) == 0 {
				continue
			}
			y := make([]float32, len(choices)*cols)
			if err := f(expertRows{expert, from, len(choices)}, y, choices); err != nil {
				return nil, err
			}
			for n, c := range choices {
				copy(made[c.rank][c.place*cols:(c.place+1)*cols], y[n*cols:])
			}
		}
	}
	return made, nil
}

// sums returns the sums of the rows of each token, weighted or not.
func (s *sentTokens) sums(rows [][]float32, weighted bool) [][]float32 {
	cols := s.e.Dispatch.Cols
	all := make([][]float32, len(rows))
	for i, list := range s.asked {
		all[i] = make([]float32, len(list)*cols)
		rest := rows[i]
		for t, a := range list {
			for _, weight := range a.weights {
				if !weighted {
					weight = 1
				}
				addWeighted(all[i][t*cols:(t+1)*cols], rest, weight)
				rest = rest[cols:]
			}
		}
	}
	return all
}

// addWeighted adds weight times row to sum.
func addWeighted(sum, row []float32, weight float32) {
	for i, v := range row[:len(sum)] {
		if sum[i] += float32(v * weight); sum[i] != sum[i] {
			sum[i] = canonicalNaN
		}
	}
}

// combine writes to y the sums of what came back for each token: of each rank's sum, or of
// each expert's row, weighted unless weights are nil.
func (s *sentTokens) combine(y []float32, back [][]float32, weights []float32) {
	cols := s.e.Dispatch.Cols
	clear(y)
	if s.e.SumAtSource {
		for j, list := range s.mine {
			for row, a := range list {
				addWeighted(y[a.token*cols:(a.token+1)*cols], back[j][row*cols:], 1)
			}
		}
		return
	}
	for i, row := range s.rowsBack(back) {
		weight := float32(1)
		if weights != nil {
			weight = weights[i]
		}
		if token := i / s.routes.TopK; row != nil {
			addWeighted(y[token*cols:(token+1)*cols], row, weight)
		}
	}
}

// rowsBack returns the rows that came back by their places in Routes.
func (s *sentTokens) rowsBack(back [][]float32) [][]float32 {
	cols := s.e.Dispatch.Cols
	rows := make([][]float32, len(s.routes.Experts))
	for j, list := range s.mine {
		rest := back[j]
		for _, a := range list {
			for _, place := range a.places {
				rows[a.token*s.routes.TopK+place], rest = rest[:cols], rest[cols:]
			}
		}
	}
	return rows
}

// weightGradients writes the products of dy and results: where the token is, of the row
// that came back or, if rows were added up before, where the expert is, which sends it.
func (s *sentTokens) weightGradients(dWeights, dy []float32, received [][]float32) error {
	cols := s.e.Dispatch.Cols
	clear(dWeights)
	if !s.e.SumAtSource {
		for i, row := range s.rowsBack(s.back) {
			if token := i / s.routes.TopK; row != nil {
				dWeights[i] = canonical.Dot(dy[token*cols:(token+1)*cols], row)
			}
		}
		return nil
	}
	products := make([][]float64, len(s.asked))
	for j, list := range s.asked {
		rest := s.results[j]
		for row, a := range list {
			for range a.experts {
				d := canonical.Dot(received[j][row*cols:(row+1)*cols], rest[:cols])
				products[j], rest = append(products[j], float64(d)), rest[cols:]
			}
		}
	}
	about := collective.Subject{What: "gradients of weights", Name: s.e.Combine.Name}
	size := func(products []float64) int64 { return 4 * int64(len(products)) }
	back, err := collective.Swap(s.r, about, collective.Wire{}.String(), size, products)
	if err != nil {
		return err
	}
	for j, list := range s.mine {
		products := back[j]
		for _, a := range list {
			for _, place := range a.places {
				dWeights[a.token*s.routes.TopK+place], products = float32(products[0]), products[1:]
			}
		}
	}
	return nil
}
