package nn

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/octavo-fp8/octavo/internal/elementary"
	"github.com/octavo-fp8/octavo/internal/enum"
	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/internal/parallel"
)

// RouterConfig says how experts are chosen for tokens. Experts and TopK must be set. The
// zero value of the others is DeepSeek-V3's way (arXiv 2412.19437, section 2.1.2) without
// groups, factor and balancing.
type RouterConfig struct {
	Experts int `json:"experts"` // that there are to choose from
	TopK    int `json:"top_k"`   // that are chosen for each token

	Score Scoring `json:"score"` // how the router's logits become scores

	// Unnormalized makes the weights of the chosen experts their scores as they are, not
	// divided by their sum.
	Unnormalized bool `json:"unnormalized"`

	Scale float64 `json:"scale"` // that weights are multiplied by; 0: 1

	// Groups of as many experts each, of which TopGroups are chosen first: those with the
	// largest sums of their GroupScores largest scores. Experts of others are not chosen, so that a token is sent to few
	// nodes. 0: no groups.
	Groups    int `json:"groups"`
	TopGroups int `json:"top_groups"`

	// GroupScores is how many of its scores a group is chosen by; 0: TopK/TopGroups, at least 1. DeepSeek-V3 has 2, DeepSeek-V2 1.
	GroupScores int `json:"group_scores,omitempty"`

	// BiasRate, unless 0, balances loads without a loss (arXiv 2408.15664): each expert has
	// a bias, 0 at first, which is added to its score for choosing alone. [Scaling.EndStep]
	// moves it by BiasRate: up where fewer tokens than the mean had chosen the expert in
	// this step, down where more had. DeepSeek-V3 has 0.001. It needs Options.Shared.
	BiasRate float64 `json:"bias_rate"`

	// BalanceLoss is the factor of the sequence-wise balance loss, 0.0001 in DeepSeek-V3; 0:
	// none. For a sequence it is the sum over experts of f·P, where P is the mean of the
	// expert's share of all scores of a token, and f the number of tokens that have it
	// among their TopK largest scores, biases and groups left aside, divided by
	// what it is where all experts have as many. That of a batch is the mean over sequences.
	BalanceLoss float64 `json:"balance_loss"`

	// Rounding rounds the operands of the router's products; nil: they are FP32, as in
	// DeepSeek-V3, whatever other layers multiply in.
	Rounding *Rounding `json:"-"`
}

// Scoring is how logits become scores.
type Scoring uint8

const (
	ScoreSigmoid Scoring = iota // each by itself, as in DeepSeek-V3
	ScoreSoftmax                // of all experts, as in Mixtral; normalized, it is that of the chosen ones' logits, as in gpt-oss
)

var scorings = enum.Enum[Scoring]{
	Type: "Scoring", What: "scoring", Err: ErrConfig, Prefix: "nn", Names: []string{"sigmoid", "softmax"},
}

// String returns the text of s, such as "sigmoid".
func (s Scoring) String() string                   { return scorings.String(s) }
func (s Scoring) MarshalText() ([]byte, error)     { return scorings.MarshalText(s) }
func (s *Scoring) UnmarshalText(text []byte) error { return scorings.UnmarshalText(s, text) }

func (c RouterConfig) withDefaults() RouterConfig {
	if c.Scale == 0 {
		c.Scale = 1
	}
	if c.Groups == 0 && c.TopGroups == 0 {
		c.Groups, c.TopGroups = 1, 1
	}
	return c
}

func (c RouterConfig) check() error {
	c = c.withDefaults()
	switch {
	case c.Experts <= 0 || c.Experts > maxExperts:
		return configError("RouterConfig.Experts is %d: it must be from 1 to %d", c.Experts, maxExperts)
	case c.Groups <= 0 || c.Experts%c.Groups != 0:
		return configError("RouterConfig.Groups is %d: it must divide Experts = %d", c.Groups, c.Experts)
	case c.TopGroups <= 0 || c.TopGroups > c.Groups:
		return configError("RouterConfig.TopGroups is %d: it must be from 1 to Groups = %d", c.TopGroups, c.Groups)
	case c.TopK <= 0 || c.TopK > c.Experts/c.Groups*c.TopGroups:
		return configError("RouterConfig.TopK is %d: it must be from 1 to %d, the experts that may be chosen",
			c.TopK, c.Experts/c.Groups*c.TopGroups)
	case c.GroupScores < 0 || c.GroupScores > c.Experts/c.Groups:
		return configError("RouterConfig.GroupScores is %d: it must be from 0 to %d, the experts of a group",
			c.GroupScores, c.Experts/c.Groups)
	case !scorings.Valid(c.Score):
		return configError("RouterConfig.Score is %v: want one of %s", c.Score, strings.Join(scorings.Names, ", "))
	}
	for _, f := range []struct {
		name  string
		value float64
	}{{"Scale", c.Scale}, {"BiasRate", c.BiasRate}, {"BalanceLoss", c.BalanceLoss}} {
		if !(f.value >= 0 && f.value <= 1e6) {
			return configError("RouterConfig.%s is %v: it must be from 0 to 1e6", f.name, f.value)
		}
	}
	if c.Rounding != nil {
		return c.Rounding.check("RouterConfig.Rounding")
	}
	return nil
}

var errNoScaling = configError(
	"Options.Shared is nil: a router with a BiasRate needs one, whose Scaling ends each step")

// maxExperts keeps an index of an expert and what depends on the number of experts small.
const maxExperts = 1 << 16

// Router chooses experts for tokens, and says with what weights their results count. Its
// products are FP32, as in DeepSeek-V3, whatever its options say of others, unless its
// configuration has a Rounding.
type Router struct {
	Gate *Linear // its weight is [experts, dim]

	config  RouterConfig
	layer   string // its name in errors
	shared  *Shared
	workers int
	balance *balancer // nil: no biases

	batch, seq int
	logits     []float32 // [rows, experts]; in the backward pass their gradients
	scores     []float32 // [rows, experts]
	chosen     []int32   // [rows, TopK]
	load       []int     // of each expert
	uneven     []float32 // [batch, experts], f of the balance loss
	loss       float32
	ready      bool

	loop     parallel.Loop
	forward  func(lo, hi int) // forwardRows: a closure, made once
	choosers sync.Pool
	choices  []int32   // what Forward writes to, until it returns
	weights  []float32 // likewise
}

// NewRouter returns a router for tokens of dim values whose weight is zero, to be filled in.
// It is named prefix+"gate.weight", and with Options.Biases.Router its logits have the bias
// "gate.bias"; the biases of a BiasRate are remembered under prefix+"gate". The
// error is [ErrConfig].
func NewRouter(prefix string, dim int, c RouterConfig, o Options) (*Router, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if err := checkMatrix(prefix+"gate.weight", c.Experts, dim); err != nil {
		return nil, err
	}
	if c.BiasRate > 0 && o.Shared == nil {
		return nil, errNoScaling
	}
	o, err := o.complete("Options")
	if err != nil {
		return nil, err
	}
	return newRouter(prefix, dim, c.withDefaults(), o)
}

func newRouter(prefix string, dim int, c RouterConfig, o Options) (r *Router, err error) {
	r = &Router{
		config: c, layer: prefix + "gate", shared: o.Shared, workers: o.Workers, load: make([]int, c.Experts),
	}
	name := r.layer + ".weight"
	own := Options{Shared: o.Shared, Rounding: c.Rounding.clone(), Workers: o.Workers}
	if r.Gate, err = newLinear(name, o.Shared.newMatrix(name, c.Experts, dim), own); err != nil {
		return nil, err
	}
	r.Gate.addBiasIf(o.Biases.Router)
	if c.BiasRate > 0 {
		r.balance, err = o.Shared.scaling.balancer(r.layer, c.Experts, float32(c.BiasRate))
	}
	return r, err
}

// Load returns how many tokens have chosen each expert in the last Forward. It is the
// router's own and valid until the next.
func (r *Router) Load() []int { return r.load }

// Chosen returns the experts that the last Forward chose, as it wrote them. It is the
// router's own and valid until the next.
func (r *Router) Chosen() []int32 { return r.chosen }

// Bias returns a copy of the biases of the experts, or nil without a BiasRate.
func (r *Router) Bias() []float32 {
	if r.balance == nil {
		return nil
	}
	return slices.Clone(r.balance.bias)
}

// BalanceLoss returns the balance loss of the last Forward, its factor included.
func (r *Router) BalanceLoss() float32 { return r.loss }

// Forward chooses TopK experts for each row of x, [batch·seq, dim], sequence after sequence.
// It writes them to chosen and their weights to weights, both [batch·seq, TopK], in the
// order of the experts. Of equal scores that of the expert with the smaller number counts
// as larger; a NaN counts as larger than all, so that it is seen. The layer keeps x,
// which must stay as it is until [Router.Backward].
func (r *Router) Forward(ctx context.Context, chosen []int32, weights, x []float32, batch, seq int) error {
	r.ready = false
	rows, ok := product(batch, seq)
	k, experts := r.config.TopK, r.config.Experts
	if !ok || batch <= 0 || seq <= 0 || len(chosen) != int(rows)*k || len(weights) != len(chosen) {
		return inputError("%s: %d choices and %d weights are not %d of each row of %d sequences of %d",
			r.layer, len(chosen), len(weights), k, batch, seq)
	}
	n, ok := product(int(rows), experts)
	if !ok {
		return inputError("%s: the scores of %d sequences of %d are too many", r.layer, batch, seq)
	}
	r.batch, r.seq = batch, seq
	if err := r.Gate.Forward(ctx, sized(&r.logits, int(n)), x, int(rows)); err != nil {
		return err
	}
	sized(&r.scores, int(n))
	if r.forward == nil {
		r.forward = r.forwardRows
	}
	r.choices, r.weights = chosen, weights
	r.loop.For(int(rows), max(elementGrain/(experts*k), 1), r.workers, r.forward)
	r.choices, r.weights = nil, nil
	r.chosen = append(r.chosen[:0], chosen...)
	clear(r.load)
	for _, e := range chosen {
		r.load[e]++
	}
	r.measure()
	r.ready = r.shared.training()
	return nil
}

// forwardRows is Forward of rows [lo, hi), whose logits are there.
func (r *Router) forwardRows(lo, hi int) {
	c, _ := r.choosers.Get().(*chooser)
	if c == nil {
		c = newChooser(r)
	}
	k, experts := r.config.TopK, r.config.Experts
	for row := lo; row < hi; row++ {
		scores := r.scores[row*experts:][:experts]
		r.score(scores, r.logits[row*experts:][:experts])
		c.choose(r.choices[row*k:][:k], scores)
		r.weigh(r.weights[row*k:][:k], r.choices[row*k:], scores)
	}
	r.choosers.Put(c)
}

// score writes the scores of a token to s.
func (r *Router) score(s, logits []float32) {
	if r.config.Score == ScoreSoftmax {
		copy(s, logits)
		softmax(s, 1, noSink, sums{})
		return
	}
	for i, z := range logits {
		s[i] = elementary.Sigmoid(z)
	}
}

// least is added to sums of scores that others are divided by, which may all be 0.
const least = 1e-20

// weigh writes the weights of chosen[:len(w)].
func (r *Router) weigh(w []float32, chosen []int32, scores []float32) {
	sum := float32(least)
	for i := range w {
		w[i] = scores[chosen[i]]
		sum += w[i]
	}
	for i := range w {
		if !r.config.Unnormalized {
			w[i] /= sum
		}
		w[i] *= float32(r.config.Scale)
	}
}

// chooser finds the largest scores of a token.
type chooser struct {
	*Router
	biased []float32
	groups []float32 // the score of each group
	taken  []bool
	none   []bool  // of the groups, all of which are there to choose from
	order  []int32 // by score, the largest first
}

func newChooser(r *Router) *chooser {
	n := r.config.Experts
	return &chooser{
		Router: r,
		biased: make([]float32, n), groups: make([]float32, r.config.Groups), taken: make([]bool, n), none: make([]bool, r.config.Groups),
	}
}

// choose writes the chosen experts in the order of their numbers.
func (c *chooser) choose(chosen []int32, scores []float32) {
	copy(c.biased, scores)
	if c.balance != nil {
		addTo(c.biased, c.biased, c.balance.bias)
	}
	clear(c.taken)
	if c.config.TopGroups < c.config.Groups {
		c.leaveGroups()
	}
	copy(chosen, c.largest(c.biased, c.taken, len(chosen)))
	slices.Sort(chosen)
}

// leaveGroups takes all experts of the groups that are not chosen.
func (c *chooser) leaveGroups() {
	size := len(c.biased) / len(c.groups)
	n := cmp.Or(c.config.GroupScores, max(c.config.TopK/c.config.TopGroups, 1))
	for g := range c.groups {
		scores, taken := c.biased[g*size:][:size], c.taken[g*size:][:size]
		c.groups[g] = 0
		for _, e := range c.largest(scores, taken, min(n, size)) {
			c.groups[g] += scores[e]
		}
	}
	for i := range c.taken {
		c.taken[i] = true
	}
	for _, g := range c.largest(c.groups, c.none, c.config.TopGroups) {
		clear(c.taken[int(g)*size:][:size])
	}
}

// largest returns the places of the n largest scores that are not taken, the largest first.
func (c *chooser) largest(scores []float32, taken []bool, n int) []int32 {
	c.order = c.order[:0]
	for range n {
		best := -1
		for i, s := range scores {
			if !taken[i] && !slices.Contains(c.order, int32(i)) && (best < 0 || larger(s, scores[best])) {
				best = i
			}
		}
		c.order = append(c.order, int32(best))
	}
	return c.order
}

// larger reports whether a > b, where NaN is larger than all else.
func larger(a, b float32) bool {
	return a > b || math.IsNaN(float64(a)) && !math.IsNaN(float64(b))
}

// measure computes the balance loss.
func (r *Router) measure() {
	r.loss = 0
	if r.config.BalanceLoss == 0 {
		return
	}
	experts := r.config.Experts
	clear(sized(&r.uneven, r.batch*experts))
	losses := make([]float64, r.batch)
	parallel.For(r.batch, 1, r.workers, func(lo, hi int) {
		c := newChooser(r)
		shares := make([]float64, experts)
		for b := lo; b < hi; b++ {
			uneven := r.uneven[b*experts:][:experts]
			clear(shares)
			for t := range r.seq {
				scores := r.scores[(b*r.seq+t)*experts:][:experts]
				total := total(scores)
				for i, s := range scores {
					shares[i] += float64(s / total)
				}
				for _, e := range c.largest(scores, c.taken, r.config.TopK) {
					uneven[e]++
				}
			}
			for i, n := range uneven {
				uneven[i] = float32(float64(n) * float64(experts) / (float64(r.config.TopK) * float64(r.seq)))
				losses[b] += float64(float64(uneven[i])*shares[i]) / float64(r.seq)
			}
		}
	})
	var sum float64
	for _, l := range losses {
		sum += l
	}
	r.loss = float32(r.config.BalanceLoss * sum / float64(r.batch))
}

// total returns the sum of scores that each is divided by.
func total(scores []float32) float32 { return sums{}.total(least, scores) }

// Backward takes the gradients dWeights of the weights that the last Forward wrote. It
// writes that of x, [batch·seq, dim], to dx, and adds that of the router's weight to its
// Grad: those of what dWeights are the gradient of, and of scale times the balance loss.
// The tokens that chose each expert count for its bias from now on: choices without a
// backward pass, of which nothing is learnt, do not.
func (r *Router) Backward(ctx context.Context, dx, dWeights []float32, scale float32) error {
	if !r.ready {
		return noForward(r.layer)
	}
	if len(dWeights) != len(r.chosen) {
		return inputError("%s: %d gradients are not those of %d weights", r.layer, len(dWeights), len(r.chosen))
	}
	if err := meter.Err(ctx); err != nil {
		return err
	}
	r.ready = false
	if r.balance != nil {
		r.balance.add(r.load)
	}
	k, experts := r.config.TopK, r.config.Experts
	factor := float32(r.config.BalanceLoss / (float64(r.seq) * float64(r.batch)) * float64(scale))
	parallel.For(r.batch*r.seq, max(elementGrain/experts, 1), r.workers, func(lo, hi int) {
		for row := lo; row < hi; row++ {
			d, scores := r.logits[row*experts:][:experts], r.scores[row*experts:][:experts]
			clear(d)
			r.weighBackward(d, dWeights[row*k:][:k], r.chosen[row*k:], scores)
			if factor != 0 {
				addShareGradients(d, r.uneven[row/r.seq*experts:][:experts], scores, factor)
			}
			r.scoreBackward(d, scores)
		}
	})
	return r.Gate.Backward(ctx, dx, r.logits)
}

// weighBackward adds to d, the gradients of scores, what those of the weights say.
func (r *Router) weighBackward(d, dWeights []float32, chosen []int32, scores []float32) {
	scale := float32(r.config.Scale)
	if r.config.Unnormalized {
		for i, dw := range dWeights {
			d[chosen[i]] = dw * scale
		}
		return
	}
	sum, along := float32(least), float32(0)
	for i, dw := range dWeights {
		s := scores[chosen[i]]
		sum += s
		along += float32(dw * s)
	}
	along /= sum
	for i, dw := range dWeights {
		d[chosen[i]] = (dw - along) / sum * scale
	}
}

// addShareGradients adds to d, the gradients of scores, those of factor times the sum of
// uneven times each score's share of all.
func addShareGradients(d, uneven, scores []float32, factor float32) {
	sum, along := total(scores), float32(0)
	for i, s := range scores {
		along += float32(uneven[i] * s)
	}
	along /= sum
	for i := range d {
		d[i] += float32((uneven[i] - along) / sum * factor)
	}
}

// scoreBackward replaces d, the gradients of scores, by those of logits.
func (r *Router) scoreBackward(d, scores []float32) {
	if r.config.Score == ScoreSoftmax {
		softmaxBackward(d, scores, sums{}.dot(d, scores), 1)
		return
	}
	for i, s := range scores {
		d[i] *= s * (1 - s)
	}
}
