package layers

import (
	"context"

	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/parallel/collective"
	"github.com/octavo-fp8/octavo/train"
)

// llamaPart is what a rank has of a Llama: a stage of its layers, and slices of those.
type llamaPart struct {
	cfg    nn.Config
	layout *Layout
	seat   seat

	shared, experts nn.Shared // of all but routed experts, and of these
	embedding       *embedding
	chunks          []*llamaChunk
	norm            norm
	head            *linear
	loss            crossEntropy
	params          []*partParam
	tied            []*partParam // the head's, where another rank moves them

	embeddingParams, headParams []*partParam // those of the last norm among the head's

	weights []float32     // of a layer, in stage 3 of ZeRO
	pieces  []train.Piece // of all parameters of the model: what is moved, or nothing

	llamaRun
}

// llamaChunk is a stage of a pipeline.
type llamaChunk struct {
	*llamaPart
	first, last bool
	blocks      []*llamaBlock
}

// llamaRun is what a part is doing.
type llamaRun struct {
	groups
	batch           *llamaBatch
	shard, micro    int // shard counts those of the rank
	logits, dLogits [][]float32
}

// llamaBatch is what all ranks are given.
type llamaBatch struct {
	tokens, targets  []int32
	sequences, seq   int // of a micro-batch
	firstPass        uint64
	losses           []float32 // by shard and micro-batch; the last stage writes them
	shardsOfRank     int
	microOfEachShard int
}

// of returns the part of tokens or targets that is a micro-batch.
func (b *llamaBatch) of(values []int32, shard, micro int) []int32 {
	n := b.sequences * b.seq
	return values[(shard*b.microOfEachShard+micro)*n:][:n]
}

// norm is an rmsNorm of all rows, or of those of slices.
type norm interface {
	Forward(r *collective.Rank, y, x []float32) error
	Backward(r *collective.Rank, dx, dy []float32, whole int) error
}

// wholeNorm is that of all rows.
type wholeNorm struct{ norm *nn.RMSNorm }

func (n wholeNorm) Forward(r *collective.Rank, y, x []float32) error {
	return n.norm.Forward(r.Context(), y, x)
}

func (n wholeNorm) Backward(r *collective.Rank, dx, dy []float32, _ int) error {
	return n.norm.Backward(r.Context(), dx, dy)
}

// headsLayer is an attention or an mla.
type headsLayer interface {
	Forward(r *collective.Rank, y, x []float32, batch, seq int) error
	Backward(r *collective.Rank, dx, dy []float32) error
	cuts() []cut
}

// llamaBlock is a layer of a Llama, of which a rank has slices.
type llamaBlock struct {
	params                 []*partParam
	attentionNorm, mlpNorm norm
	attention              headsLayer
	mlp                    *MLP     // one of both is nil
	mixture                *mixture // of experts
}

// global returns the number of one of the rank's shards among all.
func (p *llamaPart) global(data, shard int) int { return data*p.batch.shardsOfRank + shard }

// pass returns the number of the backward pass of a shard, and the micro-batch under way.
func (p *llamaPart) pass(shard int) uint64 {
	return p.batch.firstPass + uint64(shard*p.batch.microOfEachShard+p.micro)
}

// beginPass gives gradients that are rounded at random the numbers of a shard.
func beginPass(s *nn.Shared, pass uint64) {
	s.Scaling().SetPass(pass)
	s.Scaling().BeginBackward()
}

// beginSource makes the rank's experts do the backward pass of tokens of a rank of those that
// share experts out: gradients are those of its shard.
func (p *llamaPart) beginSource(from int) {
	first := p.seat.data / p.layout.Expert * p.layout.Expert
	shard := p.global(first+from, p.shard)
	beginPass(&p.experts, p.pass(shard))
	for _, q := range p.params {
		if q.expert {
			q.Grad = q.grads[shard-q.firstShard]
		}
	}
}

// rows returns the tokens of a micro-batch, and those [lo, hi) whose residual stream the rank
// has.
func (p *llamaPart) rows() (all, lo, hi int) {
	all = p.batch.sequences * p.batch.seq
	if !p.layout.Sequence {
		return all, 0, all
	}
	s := collective.Slices{Count: p.layout.Slices}
	lo, hi = s.Tokens(all, p.seat.tensor, p.layout.Tensor)
	return all, lo, hi
}

// whole returns all rows of what is in the residual stream.
func (p *llamaPart) whole(own []float32) ([]float32, error) {
	if !p.layout.Sequence {
		return own, nil
	}
	all, _, _ := p.rows()
	s := p.layout.sums(gatheredRows)
	s.Cols = p.cfg.Dim
	rows := make([]float32, all*p.cfg.Dim)
	return rows, p.tensor.AllGatherSlices(s, rows, own)
}

// own returns the rank's rows of all.
func (p *llamaPart) own(whole []float32) []float32 {
	_, lo, hi := p.rows()
	return whole[lo*p.cfg.Dim : hi*p.cfg.Dim]
}

// with calls f with the weights of a layer, which in stage 3 of ZeRO it gathers and releases.
func (p *llamaPart) with(layer []*partParam, f func() error) error {
	if p.layout.Zero < 3 {
		return f()
	}
	lo := 0
	for _, q := range layer {
		hi := lo + q.Rows*q.Cols
		q.lend(p.weights[lo:hi:hi])
		if err := q.gather(p.groupOf(q), p.layout); err != nil {
			return err
		}
		lo = hi
	}
	err := f()
	for _, q := range layer {
		q.lend(nil)
	}
	for i := range p.weights[:lo] {
		p.weights[i] = canonicalNaN // so that every use after it is seen
	}
	return err
}

// releaseAll leaves the layers no weights but memory for those of one at a time.
func (p *llamaPart) releaseAll() {
	layers := [][]*partParam{p.embeddingParams, p.headParams}
	for _, c := range p.chunks {
		for _, b := range c.blocks {
			layers = append(layers, b.params)
		}
	}
	most := 0
	for _, layer := range layers {
		n := 0
		for _, q := range layer {
			n += q.Rows * q.Cols
			q.lend(nil)
		}
		most = max(most, n)
	}
	p.weights = make([]float32, most)
}

// Forward implements stage.
func (c *llamaChunk) Forward(_ context.Context, micro int, x []float32) ([]float32, error) {
	c.micro = micro
	if c.first {
		err := c.with(c.embeddingParams, func() (err error) { x, err = c.embed(); return err })
		if err != nil {
			return nil, err
		}
	}
	for _, b := range c.blocks {
		err := c.with(b.params, func() (err error) { x, err = b.forward(c.llamaPart, x); return err })
		if err != nil {
			return nil, err
		}
	}
	if !c.last {
		return x, nil
	}
	return nil, c.with(c.headParams, func() error { return c.lossForward(x) })
}

// embed returns the residual stream before the first block.
func (p *llamaPart) embed() ([]float32, error) {
	_, lo, hi := p.rows()
	x := make([]float32, (hi-lo)*p.cfg.Dim)
	tokens := p.batch.of(p.batch.tokens, p.global(p.seat.data, p.shard), p.micro)
	return x, p.embedding.Forward(p.tensor, x, tokens)
}

// lossForward computes the loss, given the residual stream after the last block.
func (p *llamaPart) lossForward(x []float32) error {
	shard := p.global(p.seat.data, p.shard)
	all, _, _ := p.rows()
	normed := make([]float32, all*p.cfg.Dim)
	if err := p.norm.Forward(p.tensor, normed, x); err != nil {
		return err
	}
	p.logits, p.dLogits = nil, nil
	for _, part := range p.head.Parts {
		n := 0
		if part != nil {
			n = all * part.Weight.Rows
		}
		p.logits, p.dLogits = append(p.logits, make([]float32, n)), append(p.dLogits, make([]float32, n))
	}
	if err := p.head.Forward(p.tensor, p.logits, normed, all); err != nil {
		return err
	}
	loss, err := p.loss.Forward(p.tensor, p.logits, p.batch.of(p.batch.targets, shard, p.micro))
	if p.seat.tensor == 0 {
		p.batch.losses[shard*p.batch.microOfEachShard+p.micro] = loss
	}
	return err
}

// scale is what the loss of a micro-batch is multiplied by: gradients of a shard are means.
func (p *llamaPart) scale() float32 { return 1 / float32(p.layout.Micro) }

// Backward implements stage.
func (c *llamaChunk) Backward(_ context.Context, micro int, dy []float32) ([]float32, error) {
	c.micro = micro
	beginPass(&c.shared, c.pass(c.global(c.seat.data, c.shard)))
	if c.last {
		err := c.with(c.headParams, func() (err error) { dy, err = c.lossBackward(); return err })
		if err != nil {
			return nil, err
		}
	}
	for i := len(c.blocks) - 1; i >= 0; i-- {
		b := c.blocks[i]
		err := c.with(b.params, func() (err error) { dy, err = b.backward(c.llamaPart, dy); return err })
		if err != nil {
			return nil, err
		}
	}
	if !c.first {
		return dy, nil
	}
	if err := c.receiveTied(); err != nil {
		return nil, err
	}
	whole, err := c.whole(dy)
	if err != nil {
		return nil, err
	}
	return nil, c.embedding.Backward(c.tensor, whole)
}

// lossBackward returns the gradient of the residual stream after the last block.
func (p *llamaPart) lossBackward() ([]float32, error) {
	all, lo, hi := p.rows()
	if err := p.loss.Backward(p.tensor, p.dLogits, p.scale()); err != nil {
		return nil, err
	}
	for _, q := range p.tied {
		clear(q.Grad)
	}
	dNormed := make([]float32, (hi-lo)*p.cfg.Dim)
	if err := p.head.Backward(p.tensor, dNormed, p.dLogits); err != nil {
		return nil, err
	}
	if err := p.sendTied(); err != nil {
		return nil, err
	}
	dy := make([]float32, len(dNormed))
	return dy, p.norm.Backward(p.tensor, dy, dNormed, all*p.cfg.Dim)
}

// roundResidual rounds rows of the residual stream, or of its gradient.
func (p *llamaPart) roundResidual(rows []float32) {
	p.cfg.Operators.Residual.RoundRows(rows, p.cfg.Dim, p.cfg.Workers)
}

// forward returns the residual stream after the block, given that before it.
func (b *llamaBlock) forward(p *llamaPart, x []float32) ([]float32, error) {
	all, _, _ := p.rows()
	batch, seq := p.batch.sequences, p.batch.seq
	normed, middle := make([]float32, all*p.cfg.Dim), make([]float32, len(x))
	if err := b.attentionNorm.Forward(p.tensor, normed, x); err != nil {
		return nil, err
	}
	if err := b.attention.Forward(p.tensor, middle, normed, batch, seq); err != nil {
		return nil, err
	}
	collective.AddTo(middle, x)
	p.roundResidual(middle)
	normed, y := make([]float32, len(normed)), make([]float32, len(x))
	if err := b.mlpNorm.Forward(p.tensor, normed, middle); err != nil {
		return nil, err
	}
	if b.mlp != nil {
		if err := b.mlp.Forward(p.tensor, y, normed, all); err != nil {
			return nil, err
		}
	} else {
		whole := make([]float32, len(normed))
		if err := b.mixture.Forward(p.tensor, p.expert, whole, normed, batch, seq); err != nil {
			return nil, err
		}
		copy(y, p.own(whole))
	}
	collective.AddTo(y, middle)
	p.roundResidual(y)
	return y, nil
}

// backward returns the gradient of the residual stream before the block, given that after it.
func (b *llamaBlock) backward(p *llamaPart, dy []float32) ([]float32, error) {
	whole, err := p.whole(dy)
	if err != nil {
		return nil, err
	}
	dNormed, dMiddle := make([]float32, len(dy)), make([]float32, len(dy))
	if b.mlp != nil {
		err = b.mlp.Backward(p.tensor, dNormed, whole)
	} else {
		all := make([]float32, len(whole))
		err = b.mixture.Backward(p.tensor, p.expert, all, whole, p.scale())
		copy(dNormed, p.own(all))
	}
	if err != nil {
		return nil, err
	}
	if err := b.mlpNorm.Backward(p.tensor, dMiddle, dNormed, len(whole)); err != nil {
		return nil, err
	}
	collective.AddTo(dMiddle, dy)
	p.roundResidual(dMiddle)
	if whole, err = p.whole(dMiddle); err != nil {
		return nil, err
	}
	if err := b.attention.Backward(p.tensor, dNormed, whole); err != nil {
		return nil, err
	}
	dx := make([]float32, len(dy))
	if err := b.attentionNorm.Backward(p.tensor, dx, dNormed, len(whole)); err != nil {
		return nil, err
	}
	collective.AddTo(dx, dMiddle)
	p.roundResidual(dx)
	return dx, nil
}
