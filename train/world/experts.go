package world

import "context"

// Routes say to which experts the tokens of a rank go: TopK each, different ones, in the
// order in which their results are added, with weights.
type Routes struct {
	TopK    int
	Experts []int     // [tokens, TopK]
	Weights []float32 // [tokens, TopK]
}

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
	Dispatch, Combine Exchange

	// SumAtSource has a rank add the weighted results of its experts for a token, in FP32,
	// and send back one row, as DeepEP does in its normal mode; rows are added in the order
	// of ranks, so that the bits depend on how many ranks there are. Otherwise a row of
	// each expert comes back, and is weighted and added, in the order of Routes, where the
	// token is, as DeepEP does in its low-latency mode.
	SumAtSource bool
}

// Check returns an error, [ErrInput], that names the first option that is out of range.
func (e *Experts) Check() error {
	for _, err := range []error{e.Dispatch.Check(), e.Combine.Check()} {
		if err != nil {
			return err
		}
	}
	if e.Count < 1 || e.Dispatch.Cols < 1 || e.Dispatch.Cols != e.Combine.Cols {
		return inputError("%d experts for rows of %d, which send back %d: want at least 1, and the same number",
			e.Count, e.Dispatch.Cols, e.Combine.Cols)
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
		if expert < 0 || expert >= e.Count {
			return inputError("rank %d: token %d goes to expert %d: there are %d",
				rank, i/routes.TopK, expert, e.Count)
		}
	}
	return nil
}

// Experts sends the rank's tokens x, [tokens, Cols], to experts, and writes the weighted
// sums of their results to y. apply is called for each expert of the rank that has rows,
// in ascending order, with those of all ranks in the order of ranks and tokens.
func (r *Rank) Experts(e Experts, y, x []float32, routes Routes, apply ApplyExpert) error {
	if err := e.Check(); err != nil {
		return err
	}
	if err := e.checkRoutes(r.id, x, routes); err != nil {
		return err
	}
	if len(y) != len(x) {
		return inputError("rank %d: results of %d elements for %d", r.id, len(y), len(x))
	}
	t := newTokens(&e, r.Ranks(), x, routes)
	asked, err := r.askExperts(&e, t.asked)
	if err != nil {
		return err
	}
	received := make([][]float32, r.Ranks())
	for i, list := range asked {
		received[i] = make([]float32, len(list)*e.Dispatch.Cols)
	}
	if err := r.AllToAll(e.Dispatch, received, t.rows); err != nil {
		return err
	}
	results, err := e.apply(asked, received, apply)
	if err != nil {
		return err
	}
	back := make([][]float32, r.Ranks())
	for j, list := range t.asked {
		back[j] = make([]float32, e.rowsBack(list)*e.Combine.Cols)
	}
	if err := r.AllToAll(e.Combine, back, results); err != nil {
		return err
	}
	e.combine(y, back, t, routes)
	return nil
}

// asked is what one token wants of a rank: experts, with their weights and their places
// in Routes.
type asked struct {
	token   int
	experts []int
	weights []float32
	places  []int
}

// tokens are a rank's by where they go: each once to each rank that has experts of it.
type tokens struct {
	asked [][]asked
	rows  [][]float32
}

func newTokens(e *Experts, ranks int, x []float32, routes Routes) *tokens {
	t := &tokens{asked: make([][]asked, ranks), rows: make([][]float32, ranks)}
	cols := e.Dispatch.Cols
	for token := range len(x) / cols {
		for place := range routes.TopK {
			at := token*routes.TopK + place
			j := e.rank(routes.Experts[at], ranks)
			if n := len(t.asked[j]); n == 0 || t.asked[j][n-1].token != token {
				t.asked[j] = append(t.asked[j], asked{token: token})
				t.rows[j] = append(t.rows[j], x[token*cols:(token+1)*cols]...)
			}
			a := &t.asked[j][len(t.asked[j])-1]
			a.experts, a.weights = append(a.experts, routes.Experts[at]), append(a.weights, routes.Weights[at])
			a.places = append(a.places, place)
		}
	}
	return t
}

// askExperts tells all ranks what tokens want of them, and returns what is wanted of r:
// eight bytes for each expert of a token.
func (r *Rank) askExperts(e *Experts, mine [][]asked) ([][]asked, error) {
	about := subject{"routes", e.Dispatch.Name, 0, 0}
	all := make([][]asked, len(mine))
	for j, list := range mine {
		if j == r.id {
			all[j] = list
			continue
		}
		for _, a := range list {
			r.world.traffic.count(r.members[r.id], about.what, 8*int64(len(a.experts)))
		}
		if err := r.send(j, letter{subject: about, asked: list}); err != nil {
			return nil, err
		}
	}
	for i := range all {
		if i == r.id {
			continue
		}
		l, err := r.receive(i, about)
		if err != nil {
			return nil, err
		}
		all[i] = l.asked
	}
	return all, nil
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

// apply has each expert compute its rows, and returns what goes back to each rank.
func (e *Experts) apply(all [][]asked, received [][]float32, f ApplyExpert) ([][]float32, error) {
	cols := e.Dispatch.Cols
	type place struct{ rank, row, to int }
	inputs, places := map[int][]float32{}, map[int][]place{}
	back := make([][]float32, len(all))
	weights := make([][]float32, len(all)) // by row of back, where they are not summed
	for i, list := range all {
		to := 0
		for row, a := range list {
			for k, expert := range a.experts {
				inputs[expert] = append(inputs[expert], received[i][row*cols:(row+1)*cols]...)
				places[expert] = append(places[expert], place{i, row, to})
				weights[i] = append(weights[i], a.weights[k])
				to++
			}
		}
		back[i] = make([]float32, to*cols)
	}
	for expert := range e.Count {
		x := inputs[expert]
		if len(x) == 0 {
			continue
		}
		y := make([]float32, len(x))
		if err := f(expert, y, x, len(x)/cols); err != nil {
			return nil, err
		}
		for n, p := range places[expert] {
			copy(back[p.rank][p.to*cols:(p.to+1)*cols], y[n*cols:])
		}
	}
	if e.SumAtSource {
		for i, list := range all {
			back[i] = sumRows(list, back[i], weights[i], cols)
		}
	}
	return back, nil
}

// sumRows adds the weighted rows of each token.
func sumRows(list []asked, rows, weights []float32, cols int) []float32 {
	sums := make([]float32, len(list)*cols)
	for t, a := range list {
		for k := range a.experts {
			addWeighted(sums[t*cols:(t+1)*cols], rows[:cols], weights[0], k == 0)
			rows, weights = rows[cols:], weights[1:]
		}
	}
	return sums
}

// addWeighted adds weight times row to sum, or begins a sum with it.
func addWeighted(sum, row []float32, weight float32, first bool) {
	for i, v := range row[:len(sum)] {
		v = float32(v * weight)
		if !first {
			v += sum[i]
		}
		if sum[i] = v; v != v {
			sum[i] = canonicalNaN
		}
	}
}

// combine writes the sums of what came back.
func (e *Experts) combine(y []float32, back [][]float32, t *tokens, routes Routes) {
	cols := e.Combine.Cols
	if e.SumAtSource {
		begun := make([]bool, len(y)/cols)
		for j, list := range t.asked {
			for row, a := range list {
				addWeighted(y[a.token*cols:(a.token+1)*cols], back[j][row*cols:], 1, !begun[a.token])
				begun[a.token] = true
			}
		}
		return
	}
	rows := make([][]float32, len(routes.Experts))
	for j, list := range t.asked {
		for _, a := range list {
			for _, place := range a.places {
				rows[a.token*routes.TopK+place], back[j] = back[j][:cols], back[j][cols:]
			}
		}
	}
	for i, row := range rows {
		token := i / routes.TopK
		addWeighted(y[token*cols:(token+1)*cols], row, routes.Weights[i], i%routes.TopK == 0)
	}
}

// Forward does on as many ranks as there are slices of tokens what [Rank.Experts] does, and
// returns the results of each rank.
func (e Experts) Forward(
	ctx context.Context, x [][]float32, routes []Routes, apply ApplyExpert,
) ([][]float32, Traffic, error) {
	if len(x) != len(routes) {
		return nil, nil, inputError("tokens of %d ranks and routes of %d", len(x), len(routes))
	}
	y := make([][]float32, len(x))
	traffic, err := Run(ctx, len(x), func(r *Rank) error {
		y[r.ID()] = make([]float32, len(x[r.ID()]))
		return r.Experts(e, y[r.ID()], x[r.ID()], routes[r.ID()], apply)
	})
	return y, traffic, err
}
