package checkpoint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"github.com/octavo-fp8/octavo/internal/atomicfile"
	"github.com/octavo-fp8/octavo/internal/checksum"
	"github.com/octavo-fp8/octavo/internal/memory"
	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/safetensors"
)

// Convert writes the model of a plan into a directory, which is made if need be and must
// otherwise hold nothing but what an earlier call left: shards, each of which appears when it
// is complete, what belongs to the tokenizer and other files of the source
// ([Plan.CopiedFiles]), the configuration and the index, and, last, the certificate. Whoever
// finds the certificate finds the whole model.
//
// A call that is cut off, by an error, the end of ctx or of the process, leaves the shards that
// are complete, and a later one with an equal plan checks them, goes on from there and gives
// the same bytes. It is an error, ErrPlan, if the directory holds what another plan has
// written. No two calls may write into one directory.
//
// Memory is bounded whatever the size of a tensor: at most 640 MiB for strips, with fewer
// goroutines than [Options.Workers] where that takes it, unless a single row of blocks is
// larger, beside headers and about a kilobyte for each tensor.
//
// What the plan claims to keep ([Plan.Claims]) is proved first, and the certificate has for each
// such weight the proof, or the first block that breaks it. Where no weight has lost anything,
// all are read back from the files and compared with the source before the certificate says
// so; it is an error if one differs. It certifies nothing where tensors are not understood, which
// it lists.
//
// It is an error, ErrChanged, if a file of the source changes after the conversion was planned:
// what was written is then of no model, and of no use to a later call.
func Convert(ctx context.Context, p *Plan, dir string, o Options) (*Certificate, error) {
	return makeModel(ctx, p, dir, o, func(c *converting) (shards []*ShardResult, err error) {
		if shards, err = c.checkDone(ctx); err != nil {
			return nil, err
		}
		return shards, c.convert(ctx, shards)
	})
}

// completer returns what became of all shards of a plan.
type completer func(c *converting) ([]*ShardResult, error)

// makeModel is Convert of shards that are completed in one way or another.
func makeModel(
	ctx context.Context, p *Plan, dir string, o Options, complete completer,
) (*Certificate, error) {
	c, err := newConverting(p, dir, o)
	if err != nil {
		return nil, err
	}
	if cert, err := ReadCertificate(dir); err == nil {
		if err := samePlan(dir, cert.Plan, p.digest); err != nil {
			return nil, err
		}
		if err := p.checkLossless(cert); err != nil {
			return nil, err
		}
		return cert, c.forget()
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	if err := c.clean(); err != nil {
		return nil, err
	}
	cert, err := c.run(ctx, complete)
	if changed := c.checkSource(); err != nil && changed != nil {
		err = changed // that is why
	}
	return cert, err
}

// mostStrips bounds the memory of all strips that are at work.
const mostStrips = 640 << 20

// bytesOfStrip is what each element of a strip that is at work takes.
const bytesOfStrip = 16

// workers returns the number of goroutines whose strips fit in memory, or an error where a
// single one does not.
func (p *Plan) workers(o Options) (int, error) {
	largest := 1
	for _, s := range p.Shards {
		for _, t := range s.Targets {
			if t.Weight == nil || t.Copied() || t.Weight.Len() == 0 {
				continue
			}
			_, rows, cols, step := t.matrices(o.strip())
			rows = min(rows, step)
			what := fmt.Sprintf("tensor %q: a strip of %d rows of %d elements", t.Weight.Name, rows, cols)
			if err := memory.Check(int64(rows*cols), bytesOfStrip, what, "convert a smaller model"); err != nil {
				return 0, err
			}
			largest = max(largest, rows*cols)
		}
	}
	workers := o.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	return max(1, min(workers, mostStrips/bytesOfStrip/largest)), nil
}

// converting is the work of one call of Convert.
type converting struct {
	p   *Plan
	dir string
	o   Options
}

func newConverting(p *Plan, dir string, o Options) (*converting, error) {
	var err error
	if o.Workers, err = p.workers(o); err != nil {
		return nil, err
	}
	o.Errors = true
	return &converting{p: p, dir: dir, o: o}, nil
}

func (c *converting) run(ctx context.Context, complete completer) (*Certificate, error) {
	verdicts, err := c.claims(ctx)
	if err != nil {
		return nil, err
	}
	shards, err := complete(c)
	if err != nil {
		return nil, err
	}
	cert := &Certificate{Layout: c.p.Layout.Name, Plan: c.p.digest, LeftOut: c.p.leftOut(), Smoothed: c.p.smoothed}
	for _, u := range c.p.source.unread { // all others were refused
		cert.NotUnderstood = append(cert.NotUnderstood, u.Tensors...)
	}
	for _, d := range shards {
		cert.Files = append(cert.Files, d.File)
		for _, t := range d.Tensors {
			t.Claim = verdicts[t.Name]
			cert.Tensors = append(cert.Tensors, t)
		}
	}
	others, err := c.copyFiles(ctx)
	if err != nil {
		return nil, err
	}
	documents, err := c.writeDocuments()
	if err != nil {
		return nil, err
	}
	cert.Files = append(append(cert.Files, others...), documents...)
	changed := func(l WeightLoss) bool { return !l.Exact }
	if len(cert.Tensors) > 0 && len(cert.NotUnderstood) == 0 && !slices.ContainsFunc(cert.Tensors, changed) {
		if err := c.prove(ctx); err != nil {
			return nil, err
		}
		cert.Lossless, cert.Proof = true, proved
	}
	if err := c.p.checkLossless(cert); err != nil {
		return nil, err
	}
	if err := c.checkSource(); err != nil {
		return nil, err
	}
	text, err := encodeJSON(cert)
	if err != nil {
		return nil, err
	}
	if _, err := c.write(CertificateName, text); err != nil {
		return nil, err
	}
	return cert, c.forget()
}

// convert writes the shards that are not there. While one is put on disk, the next is
// converted.
func (c *converting) convert(ctx context.Context, shards []*ShardResult) error {
	var missing []int
	for i := range c.p.Shards {
		if shards[i] == nil {
			missing = append(missing, i)
		}
	}
	o := c.o
	if o.Progress != nil {
		o.Progress = &whole{r: o.Progress, op: "convert", total: c.workOf(missing)}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(missing))
	before := make(chan struct{}) // closed when the shard before is on disk
	close(before)
	for k, i := range missing {
		if errs[k] = ctx.Err(); errs[k] != nil {
			break
		}
		converted, finished := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(finished)
			once := sync.OnceFunc(func() { close(converted) })
			defer once()
			if shards[i], errs[k] = c.shard(ctx, &c.p.Shards[i], o, once); errs[k] != nil {
				cancel()
			}
		}()
		<-converted
		<-before
		before = finished
	}
	<-before
	return firstCause(errs)
}

// firstCause returns the first error that is not about a context that was cancelled because of
// another, nil if there is none.
func firstCause(errs []error) (first error) {
	for _, err := range errs {
		if err != nil && (first == nil || errors.Is(first, context.Canceled)) {
			first = err
		}
	}
	return first
}

// shard writes a shard. It calls converted when all is done but what the disk has to do.
func (c *converting) shard(
	ctx context.Context, s *Shard, o Options, converted func(),
) (*ShardResult, error) {
	var results []Result
	write := func(w *safetensors.WriterAt) (err error) {
		results, err = Write(ctx, s.Targets, w, o)
		if err == nil {
			err = c.checkSource()
		}
		converted()
		return err
	}
	file, err := c.writeShard(ctx, s, write)
	if err != nil {
		return nil, err
	}
	d := &ShardResult{Plan: c.p.digest, File: file}
	for i, t := range s.Targets {
		if t.Weight != nil {
			d.Tensors = append(d.Tensors, lossOf(t, &results[i], s.Name))
			d.Stats = append(d.Stats, results[i].Stats)
		}
	}
	text, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	_, err = c.write(s.Name+doneSuffix, text)
	return d, err
}

// writeShard makes a file of what write writes, and sums it up meanwhile.
func (c *converting) writeShard(
	ctx context.Context, s *Shard, write func(w *safetensors.WriterAt) error,
) (sum FileSum, err error) {
	f, err := atomicfile.Create(filepath.Join(c.dir, s.Name))
	if err != nil {
		return sum, err
	}
	defer f.Close()
	sums := &checksum.Writer{WriterAt: f}
	w, err := safetensors.NewWriterAt(sums, s.Infos(), Metadata())
	if err != nil {
		return sum, err
	}
	if err := write(w); err != nil {
		return sum, err
	}
	if err := w.Close(); err != nil {
		return sum, err
	}
	if err := f.Commit(); err != nil {
		return sum, err
	}
	size, crc, ok := sums.Sum()
	if !ok {
		return c.sum(s.Name, meter.New(ctx, nil, "", 0))
	}
	return FileSum{Name: s.Name, Bytes: size, CRC32: hexSum(crc)}, nil
}
