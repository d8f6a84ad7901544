package checkpoint

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/internal/sentinel"
)

// ShardResult is what became of a shard that is complete.
type ShardResult struct {
	Plan    string       `json:"plan"` // see [Plan.Digest]
	File    FileSum      `json:"file"`
	Tensors []WeightLoss `json:"tensors"`

	// Stats count, for each of Tensors, what was quantized of it.
	Stats []fp8.Stats `json:"stats"`
}

// ConvertShard writes one shard of a plan into a directory, which must be there, as [Convert]
// does, and what [Finish] needs to know of it. It is for those who divide the shards of a
// model among processes, or machines that share the directory: shards may be converted in any
// order, at the same time, and each as often as one likes. One that is complete is read, to
// compare its sum, and is not written again; two calls that write the same shard at once both
// give the same bytes, and the file is whole at any moment. After an error or a crash there is
// the shard as it was before, or none.
//
// Weights that share a scale with others are read wherever these lie, also in other shards. It
// is an error, ErrLossy, if the plan allows no loss and a weight of the shard has lost something.
func ConvertShard(
	ctx context.Context, p *Plan, dir string, shard int, o Options,
) (*ShardResult, error) {
	if shard < 0 || shard >= len(p.Shards) {
		return nil, fmt.Errorf("checkpoint: there is no shard %d: the plan has %d", shard, len(p.Shards))
	}
	c, err := newConverting(p, dir, o)
	if err != nil {
		return nil, err
	}
	r, err := c.again(ctx, &p.Shards[shard])
	if err != nil {
		return nil, err
	}
	return r, p.checkLossless(&Certificate{Tensors: r.Tensors})
}

// again returns what became of a shard if it is complete and undamaged, and else converts it.
func (c *converting) again(ctx context.Context, s *Shard) (*ShardResult, error) {
	r, err := c.known(s)
	if err != nil {
		return nil, err
	}
	if r != nil {
		sum, err := c.sum(s.Name, meter.New(ctx, nil, "", 0))
		if err != nil {
			return nil, err
		}
		if sum == r.File {
			return r, nil
		}
	}
	return c.shard(ctx, s, c.o, func() {})
}

// Finish writes what makes shards that [ConvertShard] has completed a model: all else that
// [Convert] writes, and that is also what Convert would have written. It believes what is kept
// of shards and reads none of them, but for what is to be proved. It is an error, ErrPlan, if
// one is not complete. Like Convert it returns at once where there is a certificate.
func Finish(ctx context.Context, p *Plan, dir string, o Options) (*Certificate, error) {
	return makeModel(ctx, p, dir, o, (*converting).believe)
}

// believe returns what is kept of the shards, all of which must be there.
func (c *converting) believe() ([]*ShardResult, error) {
	shards := make([]*ShardResult, len(c.p.Shards))
	for i := range c.p.Shards {
		s := &c.p.Shards[i]
		var err error
		if shards[i], err = c.known(s); err != nil {
			return nil, err
		}
		if shards[i] == nil {
			return nil, sentinel.Errorf(ErrPlan, "%s: it is not complete: convert that shard first",
				filepath.Join(c.dir, s.Name))
		}
	}
	return shards, nil
}
