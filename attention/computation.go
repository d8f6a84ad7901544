package attention

import (
	"fmt"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/internal/softmax"
	"github.com/octavo-fp8/octavo/tensor"
)

// The natural logarithms of the order's description.
const (
	log2E = float32(1.4426950408889634)
	ln2   = float32(0.6931471805599453)
)

// tile is the number of keys of a tile.
const tile = softmax.Keys

// computation is one attention that a run computes, whatever Q, K and V come from.
type computation struct {
	q, k, v source
	cached  *Sequence // that k and v are of, some of which may have been evicted; or nil
	sizes   Sizes
	scale   float32 // SL
	capped  float32 // what scores are multiplied by before their tanh is taken; 0: it is not
	mask    Mask
	sinks   []float32

	results
	products
	tokenValues
	division

	own       [3]operandSource // memory for q, k and v
	ownScaled scaledSource
	ownWide   [2]cachedWide
}

// results are where results go: the output in one of its types, the others or nil.
type results struct {
	out32    []float32
	out16    []fp8.BFloat16
	lse, max []float32
}

// products say how Q and K, and P and V, are multiplied.
type products struct {
	block            int  // of dim that share scales of Q and K
	exactQK, exactPV bool // products are float32s
	wideQK, wideV    bool // elements of Q or K, and of V, have more than 8 bits of precision
	wholeP           bool // P is not rounded, unless it is to be to 8 bits
	outer            bool // scores are multiplied by outer scales
}

// tokenValues say how the values of tokens lie and are scaled.
type tokenValues struct {
	tokenScales bool // each token has its own scale
	oneRow      bool // a token's values are the first elements of its key
	vmax        []float32
	tileScales  [tile]float32 // where they are looked for
}

// division is how a computation is divided into jobs, and where its partial results are.
type division struct {
	group     int // query heads of a head of K and V
	rowsOnce  int // of the group's, that a job has
	rowJobs   int
	jobs      int
	firstJob  int
	firstPart int // of the partial results of splits, in rows and in elements
	partAt    int
}

// ofProblem sets what a problem says, once it is checked.
func (a *computation) ofProblem(p *Problem) error {
	if err := p.Check(); err != nil {
		return err
	}
	a.own = [3]operandSource{newOperandSource(p.Q), newOperandSource(p.K), newOperandSource(p.V)}
	a.q, a.k, a.v = &a.own[0], &a.own[1], &a.own[2]
	if a.own[2].scattered() {
		a.ownScaled.operandSource = a.own[2]
		a.v = &a.ownScaled
	}
	if err := checkBlocks(p); err != nil {
		return err
	}
	a.sizes, a.mask, a.sinks, a.wholeP = p.Sizes(), p.Mask, p.Sinks, p.V.Float32 != nil
	return a.begin(p.SoftmaxScale(), p.Cap)
}

// checkBlocks reports whether scales of Q and K cannot be factored out of their products.
func checkBlocks(p *Problem) error {
	q, k := p.Q.Codes, p.K.Codes
	if q != nil && k != nil {
		if _, err := gemm.CheckOperands(q, k); err != nil {
			return fmt.Errorf("attention: Q and K: %w", err)
		}
		return nil
	}
	for _, t := range []*tensor.Tensor{q, k} {
		if t == nil {
			continue
		}
		if err := gemm.CheckBlocks(t.Block, tensor.Block{}); err != nil {
			return fmt.Errorf("attention: Q and K: %w", err)
		}
	}
	return nil
}

// begin sets everything that follows from the sources, the sizes, the scale and the cap.
func (a *computation) begin(scale, limit float32) error {
	s := a.sizes
	if a.capped = 0; limit != 0 {
		a.capped, scale = scale/limit, limit
	}
	a.scale = float32(float64(scale) * 1.4426950408889634)
	a.block = max(1, min(a.q.block(), a.k.block()))
	a.outer = !a.q.outer().None() || !a.k.outer().None()
	a.group = s.Heads / s.KVHeads
	_, codesQ := a.q.format()
	_, codesK := a.k.format()
	a.exactQK = codesQ && codesK
	f, codesV := a.v.format()
	a.exactPV = codesV && f.MinSubnormal() >= 0x1p-16 // P is a multiple of 2^-133
	a.wideQK, a.wideV = a.q.wide() || a.k.wide(), a.v.wide()
	a.tokenScales = a.v.byToken()
	if a.tokenScales {
		a.findLargest()
	}
	return nil
}

// gone reports whether a key, and its whole tile, was evicted.
func (a *computation) gone(key int) bool { return a.cached != nil && a.cached.gone(key) }

// findLargest sets vmax of every head. A NaN among the scales is not the largest.
func (a *computation) findLargest() {
	a.vmax = grow(a.vmax, a.sizes.KVHeads)
	scales := a.tileScales[:]
	for h := range a.vmax {
		largest := float32(0)
		for lo := 0; lo < a.sizes.Keys; lo += tile {
			hi := min(lo+tile, a.sizes.Keys)
			a.v.scales(scales, h, lo, hi)
			for _, x := range scales[:hi-lo] {
				if x > largest {
					largest = x
				}
			}
		}
		a.vmax[h] = largest
	}
}

// share returns what p of a token with this scale of V is multiplied with.
func share(scale, largest float32) float32 {
	if largest == 0 && scale == 0 {
		return 1
	}
	return scale / largest
}

// rows is the number of rows of queries of a head of K and V: row r is query r/group of its
// query head r%group.
func (a *computation) rows() int { return a.group * a.sizes.Queries }

// place returns where a row is among heads·queries.
func (a *computation) place(kvHead, row int) int {
	return (kvHead*a.group+row%a.group)*a.sizes.Queries + row/a.group
}

// sees returns the keys that a row sees.
func (a *computation) sees(row int) (lo, hi int) {
	return a.mask.Range(row/a.group, a.sizes.Queries, a.sizes.Keys)
}

// alpha returns a score times the outer scales of a row of queries and of a key.
func (a *computation) alpha(score float32, kvHead, row, key int) float32 {
	if !a.outer {
		return score
	}
	_, keys, _ := a.k.dims()
	return score * (a.q.outer().Factor(a.place(kvHead, row)) * a.k.outer().Factor(kvHead*keys+key))
}

// store writes a row of the result.
func (a *computation) store(place int, row []float32) {
	at := place * a.sizes.ValueDim
	for d, x := range row {
		if a.out32 != nil {
			a.out32[at+d] = number.Canonical(x)
		} else {
			a.out16[at+d] = fp8.BFloat16FromFloat32(number.Canonical(x))
		}
	}
}

// storeSums writes the log-sum-exp and the largest score of a row, where wanted.
func (a *computation) storeSums(place int, lse, largest float32) {
	if a.lse != nil {
		a.lse[place] = number.Canonical(lse)
	}
	if a.max != nil {
		a.max[place] = number.Canonical(largest)
	}
}
