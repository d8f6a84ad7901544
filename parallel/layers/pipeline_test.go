package layers

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	order "github.com/octavo-fp8/octavo/internal/pipeline"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/parallel/collective"
	"github.com/octavo-fp8/octavo/scaling"
)

// llamaStage is some blocks of a Llama, with the embedding if it is the first and the
// norm, the head and the loss if it is the last. Micro-batches are shards.
type llamaStage struct {
	micro       int
	first, last bool
	cfg         nn.Config
	shared      nn.Shared
	embed       *nn.Embedding
	blocks      []*nn.Block
	norm        *nn.RMSNorm
	head        *nn.Linear
	loss        nn.CrossEntropy

	x      [][]float32 // before each block, and after the last
	normed []float32
	logits []float32
	losses []float32
	calls  int
}

const pipeBatch, pipeSeq = 2, 6

func pipeConfig() nn.Config {
	f := nn.ProfileFP8(scaling.TEDelayed, fp8.E5M2)
	f.Stochastic = true
	return nn.Config{Vocab: 13, Dim: 8, Layers: 4, Heads: 2, Hidden: 11, Context: pipeSeq, Workers: 1, FP8: &f}
}

func newLlamaStage(t *testing.T, whole *nn.Llama, stage, stages, micro int) *llamaStage {
	cfg := whole.Config()
	s := &llamaStage{micro: micro, first: stage == 0, last: stage == stages-1, cfg: cfg, losses: make([]float32, micro)}
	o := nn.Options{Shared: &s.shared, FP8: cfg.FP8, Workers: 1}
	rotary, err := nn.NewRotary(cfg.Dim/cfg.Heads, cfg.Context, cfg.RopeTheta)
	require.NoError(t, err)
	if s.first {
		s.embed, err = nn.NewEmbedding("model.embed_tokens.weight", cfg.Vocab, cfg.Dim, o)
		require.NoError(t, err)
	}
	for l := stage * cfg.Layers / stages; l < (stage+1)*cfg.Layers/stages; l++ {
		b, err := nn.NewBlock(fmt.Sprintf("model.layers.%d.", l), nn.BlockConfig{
			AttentionConfig: nn.AttentionConfig{Dim: cfg.Dim, Heads: cfg.Heads, Rotary: rotary}, Hidden: cfg.Hidden,
		}, o)
		require.NoError(t, err)
		s.blocks = append(s.blocks, b)
	}
	if s.last {
		s.norm, err = nn.NewRMSNorm("model.norm.weight", cfg.Dim, 0, o)
		require.NoError(t, err)
		s.head, err = nn.NewLinear("lm_head.weight", cfg.Vocab, cfg.Dim, nn.Options{Shared: &s.shared, Workers: 1})
		require.NoError(t, err)
	}
	for _, p := range s.params() {
		copy(p.Value, whole.Param(p.Name).Value)
	}
	return s
}

func (s *llamaStage) params() (list []*nn.Param) {
	if s.first {
		list = append(list, s.embed.Table)
	}
	for _, b := range s.blocks {
		list = append(list, b.Params()...)
	}
	if s.last {
		list = append(list, s.norm.Gain, s.head.Weight)
	}
	return list
}

func (s *llamaStage) Forward(ctx context.Context, micro int, x []float32) ([]float32, error) {
	s.calls++
	shard, n := shards(0, s.micro)[micro], pipeBatch*pipeSeq*s.cfg.Dim
	if s.first {
		x = make([]float32, n)
		if err := s.embed.Forward(ctx, x, shard.Tokens); err != nil {
			return nil, err
		}
	}
	s.x = [][]float32{x}
	for _, b := range s.blocks {
		y := make([]float32, n)
		if err := b.Forward(ctx, y, s.x[len(s.x)-1], pipeBatch, pipeSeq); err != nil {
			return nil, err
		}
		s.x = append(s.x, y)
	}
	if !s.last {
		return s.x[len(s.x)-1], nil
	}
	s.normed, s.logits = make([]float32, n), make([]float32, pipeBatch*pipeSeq*s.cfg.Vocab)
	if err := s.norm.Forward(ctx, s.normed, s.x[len(s.x)-1]); err != nil {
		return nil, err
	}
	if err := s.head.Forward(ctx, s.logits, s.normed, pipeBatch*pipeSeq); err != nil {
		return nil, err
	}
	loss, err := s.loss.Forward(ctx, s.logits, shard.Targets, s.cfg.Vocab)
	s.losses[micro] = loss
	return nil, err
}

func (s *llamaStage) Backward(ctx context.Context, micro int, dy []float32) ([]float32, error) {
	s.shared.Scaling().SetPass(uint64(micro))
	s.shared.Scaling().BeginBackward()
	if s.last {
		dLogits, dNormed := make([]float32, len(s.logits)), make([]float32, len(s.normed))
		if err := s.loss.Backward(ctx, dLogits, 1/float32(s.micro)); err != nil {
			return nil, err
		}
		if err := s.head.Backward(ctx, dNormed, dLogits); err != nil {
			return nil, err
		}
		dy = make([]float32, len(s.normed))
		if err := s.norm.Backward(ctx, dy, dNormed); err != nil {
			return nil, err
		}
	}
	for i := len(s.blocks) - 1; i >= 0; i-- {
		dx := make([]float32, len(dy))
		if err := s.blocks[i].Backward(ctx, dx, dy); err != nil {
			return nil, err
		}
		dy = dx
	}
	if s.first {
		return nil, s.embed.Backward(ctx, dy)
	}
	return dy, nil
}

// TestPipeline has the losses, gradients and amaxes of a Llama on one rank that does one
// micro-batch after the other, under delayed scales and rounding at random.
func TestPipeline(t *testing.T) {
	const micro = 6
	whole, err := nn.NewLlama(pipeConfig(), 5)
	require.NoError(t, err)
	var losses []float32
	for _, shard := range shards(0, micro) {
		loss, err := whole.Loss(t.Context(), shard.Tokens, shard.Targets, pipeBatch, pipeSeq)
		require.NoError(t, err)
		require.NoError(t, whole.BackwardScaled(t.Context(), 1/float32(micro)))
		losses = append(losses, loss)
	}
	whole.EndStep()
	for _, c := range []struct{ ranks, chunks int }{{1, 1}, {2, 1}, {3, 1}, {4, 1}, {2, 2}, {1, 4}} {
		for _, allForward := range []bool{false, true} {
			ranks, stages := c.ranks, c.ranks*c.chunks
			what := fmt.Sprintf("%d stages on %d ranks, %v", stages, ranks, allForward)
			p := pipeline{Micro: micro, AllForward: allForward}
			p.Activations.Cols, p.Gradients.Cols = 8, 8
			parts := make([]*llamaStage, stages)
			for i := range parts {
				parts[i] = newLlamaStage(t, whole, i, stages, micro)
			}
			traffic, err := collective.Run(t.Context(), ranks, func(r *collective.Rank) error {
				var own []stage
				for i := r.ID(); i < stages; i += ranks {
					own = append(own, parts[i])
				}
				return runPipeline(r, p, own...)
			})
			require.NoError(t, err, what)
			cuts := stages - 1
			if ranks == 1 {
				cuts = 0
			}
			require.Equal(t, int64(2*cuts*micro*pipeBatch*pipeSeq*8*4), traffic.Bytes(), what)
			requireSame(t, losses, parts[stages-1].losses, what)
			seen := 0
			for i, part := range parts {
				for _, param := range part.params() {
					requireSame(t, whole.Param(param.Name).Grad, param.Grad, "%s, %s", what, param.Name)
					seen++
				}
				part.shared.Scaling().EndStep()
				histories := whole.Shared().Scaling().State().Histories
				for name, h := range part.shared.Scaling().State().Histories.Histories {
					require.Equal(t, histories.Histories[name], h, name)
				}
				switch again := part.calls - micro; { // forward, for activations that are gone
				case allForward:
					require.Equal(t, micro, again, what)
				case i == stages-1 && c.chunks == 1:
					require.Zero(t, again, what)
				}
			}
			require.Len(t, whole.Params(), seen)
		}
	}
}

// TestPipelineWork: whatever the numbers, each rank runs each micro-batch forward and then
// backward in each of its stages, backward in order, and none waits forever.
func TestPipelineWork(t *testing.T) {
	for c := range 4 * 3 * 9 * 2 {
		ranks, chunks, micro := c%4+1, c/4%3+1, c/12%9+1
		p := pipeline{Micro: micro, AllForward: c/108 > 0}
		what := fmt.Sprintf("%d ranks, %d chunks, %+v", ranks, chunks, p)
		if !p.interleaves(ranks, chunks) {
			require.True(t, chunks > 1 && micro%ranks > 0 && !p.AllForward, what)
			continue
		}
		var work [][]order.Pass
		for rank := range ranks {
			work = append(work, p.schedule(ranks, chunks).Passes(rank))
			require.Len(t, work[rank], 2*chunks*micro, what)
		}
		type pass struct {
			backward     bool
			stage, micro int
		}
		done, stages := map[pass]bool{}, ranks*chunks
		for moved := true; moved; {
			moved = false
			for rank := range ranks {
				if len(work[rank]) == 0 {
					continue
				}
				w := work[rank][0]
				stage := w.Chunk*ranks + rank
				needs := pass{w.Backward, stage - 1, w.Micro}
				ready := stage == 0 || done[needs]
				if w.Backward {
					require.True(t, done[pass{false, stage, w.Micro}], what)
					require.True(t, w.Micro == 0 || done[pass{true, stage, w.Micro - 1}], what)
					needs.stage = stage + 1
					ready = stage == stages-1 || done[needs]
				}
				if ready {
					now := pass{w.Backward, stage, w.Micro}
					require.False(t, done[now], what)
					done[now], work[rank], moved = true, work[rank][1:], true
				}
			}
		}
		require.Len(t, done, 2*stages*micro, what)
	}
}

// TestPipelineFormats: in another format gradients have other bits, and are near.
func TestPipelineFormats(t *testing.T) {
	whole, err := nn.NewLlama(pipeConfig(), 5)
	require.NoError(t, err)
	gradient := func(w collective.Wire) []float32 {
		p := pipeline{Micro: 2, Activations: collective.Exchange{Wire: w, Cols: 8}, Gradients: collective.Exchange{Wire: w, Cols: 8}}
		parts := []*llamaStage{newLlamaStage(t, whole, 0, 2, 2), newLlamaStage(t, whole, 1, 2, 2)}
		_, err := collective.Run(t.Context(), 2, func(r *collective.Rank) error { return runPipeline(r, p, parts[r.ID()]) })
		require.NoError(t, err)
		return parts[0].embed.Table.Grad
	}
	want, got := gradient(collective.Wire{}), gradient(wire(t, "bf16"))
	require.NotEqual(t, want, got)
	var squares, size float64
	for i := range want {
		squares += math.Pow(float64(want[i]-got[i]), 2)
		size += math.Pow(float64(want[i]), 2)
	}
	require.Less(t, math.Sqrt(squares/size), 0.2)
}
