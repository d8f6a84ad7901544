package checkpoint

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/octavo-fp8/octavo/internal/inputfile"
	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/internal/sentinel"
)

// doneSuffix follows the name of a shard in that of the file which says that it is complete.
const doneSuffix = ".done"

// Done returns how many shards Convert has completed in a directory where it was cut off; 0
// for a directory that is absent. It is an error, ErrPlan, if they are of another plan.
func (p *Plan) Done(dir string) (shards int, err error) {
	if cert, err := ReadCertificate(dir); err == nil {
		return len(p.Shards), samePlan(dir, cert.Plan, p.digest)
	}
	for _, s := range p.Shards {
		d, err := readDone(dir, s.Name)
		if err != nil {
			return shards, err
		}
		if d != nil {
			if err := samePlan(dir, d.Plan, p.digest); err != nil {
				return shards, err
			}
			shards++
		}
	}
	return shards, nil
}

func samePlan(dir, found, want string) error {
	if found == want {
		return nil
	}
	return sentinel.Errorf(ErrPlan, "%s: it was converted from another source, "+
		"to another layout or with other options", dir)
}

// readDone returns what is kept of a shard, nil if it is not complete.
func readDone(dir, shard string) (*ShardResult, error) {
	data, err := inputfile.ReadAll(filepath.Join(dir, shard+doneSuffix), mostCertificate)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	d := new(ShardResult)
	if json.Unmarshal(data, d) != nil {
		return nil, nil // it is written anew
	}
	return d, nil
}

// clean removes files that were being written when an earlier call was cut off.
func (c *converting) clean() error {
	entries, err := os.ReadDir(c.dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".octavo-") && e.Type().IsRegular() {
			if err := os.Remove(filepath.Join(c.dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return err
}

// forget removes what was kept to go on from.
func (c *converting) forget() error {
	for _, s := range c.p.Shards {
		err := os.Remove(filepath.Join(c.dir, s.Name+doneSuffix))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// known returns what is kept of a shard if that is complete by its size, nil if not.
func (c *converting) known(s *Shard) (*ShardResult, error) {
	d, err := readDone(c.dir, s.Name)
	if err != nil || d == nil {
		return nil, err
	}
	if err := samePlan(c.dir, d.Plan, c.p.digest); err != nil {
		return nil, err
	}
	stat, err := os.Stat(filepath.Join(c.dir, s.Name))
	if err != nil || stat.Size() != d.File.Bytes {
		return nil, nil
	}
	return d, nil
}

// checkDone returns what there is of shards that are complete and undamaged, nil for others.
func (c *converting) checkDone(ctx context.Context) ([]*ShardResult, error) {
	shards := make([]*ShardResult, len(c.p.Shards))
	total := int64(0)
	for i := range c.p.Shards {
		d, err := c.known(&c.p.Shards[i])
		if err != nil {
			return nil, err
		}
		if d != nil {
			shards[i] = d
			total += d.File.Bytes
		}
	}
	m := meter.New(ctx, c.o.Progress, "check", total)
	for i, d := range shards {
		if d == nil {
			continue
		}
		sum, err := c.sum(d.File.Name, m)
		if err != nil {
			return nil, err
		}
		if sum != d.File {
			shards[i] = nil
		}
	}
	return shards, nil
}
