package checkpoint

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/octavo-fp8/octavo/internal/atomicfile"
	"github.com/octavo-fp8/octavo/internal/checksum"
	"github.com/octavo-fp8/octavo/internal/inputfile"
	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/progress"
	"github.com/octavo-fp8/octavo/safetensors"
)

// doneSuffix follows the name of a shard in that of the file which says that it is complete.
const doneSuffix = ".done"

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
// so; it is an error if one differs.
//
// It is an error, ErrChanged, if a file of the source changes meanwhile: what was written is
// then of no model, and of no use to a later call.
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
		if err := samePlan(dir, cert.Plan, c.digest); err != nil {
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

// Done returns how many shards Convert has completed in a directory where it was cut off; 0
// for a directory that is absent. It is an error, ErrPlan, if they are of another plan.
func (p *Plan) Done(dir string) (shards int, err error) {
	digest, err := p.Digest()
	if err != nil {
		return 0, err
	}
	if cert, err := ReadCertificate(dir); err == nil {
		return len(p.Shards), samePlan(dir, cert.Plan, digest)
	}
	for _, s := range p.Shards {
		d, err := readDone(dir, s.Name)
		if err != nil {
			return shards, err
		}
		if d != nil {
			if err := samePlan(dir, d.Plan, digest); err != nil {
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

// fileState is what tells whether a file of the source has changed.
type fileState struct {
	name        string
	size, nanos int64
}

func (p *Plan) states() (all []fileState, err error) {
	for _, name := range append(p.source.Files(), p.CopiedFiles()...) {
		stat, err := os.Stat(p.path(name))
		if err != nil {
			return nil, err
		}
		all = append(all, fileState{name, stat.Size(), stat.ModTime().UnixNano()})
	}
	return all, nil
}

// path returns that of a file of the source.
func (p *Plan) path(name string) string {
	return filepath.Join(p.source.dir, filepath.FromSlash(name))
}

// checkSource makes sure that the files of the source are what they were.
func (c *converting) checkSource() error {
	for _, s := range c.states {
		stat, err := os.Stat(c.p.path(s.name))
		if err != nil || stat.Size() != s.size || stat.ModTime().UnixNano() != s.nanos {
			return sentinel.Errorf(ErrChanged, "%s: it has changed since the conversion began",
				c.p.path(s.name))
		}
	}
	return nil
}

// Digest returns what tells plans apart: a checksum of the names, sizes and times of the
// source's files, of what becomes of every tensor, and of the configuration.
func (p *Plan) Digest() (string, error) {
	states, err := p.states()
	if err != nil {
		return "", err
	}
	return p.digest(states)
}

func (p *Plan) digest(states []fileState) (string, error) {
	h := sha256.New()
	for _, s := range states {
		fmt.Fprintf(h, "%q %d %d\n", s.name, s.size, s.nanos)
	}
	for _, s := range p.Shards {
		fmt.Fprintf(h, "%q\n", s.Name)
		for _, t := range s.Targets {
			fmt.Fprintf(h, "%#v %v %q %v %v\n", t.Parts, t.Roles, t.Arithmetic, t.InputAmax, t.extra)
			if t.Weight != nil {
				fmt.Fprintf(h, "%q %#v %v\n", t.Weight.Name, t.Weight.Parts, t.Weight.Block)
			}
			if t.Scheme != nil {
				fmt.Fprintf(h, "%q\n", t.Scheme.Name)
			}
			for _, w := range t.Group() {
				fmt.Fprintf(h, "%q\n", w.Name)
			}
		}
	}
	documents, err := p.Documents()
	if err != nil {
		return "", err
	}
	for _, name := range slices.Sorted(maps.Keys(documents)) {
		fmt.Fprintf(h, "%q %q\n", name, documents[name])
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// notCopied are the ends of names of files that are weights in other forms.
var notCopied = []string{
	suffix, ".bin", ".pt", ".pth", ".ckpt", ".gguf", ".h5", ".msgpack", ".onnx", ".index.json",
}

// CopiedFiles returns the names of the source's files that Convert copies: those beside weights
// and configuration but for hidden ones, weights in other forms, and what octavo wrote about an
// earlier conversion. Where a single file was opened, in a directory without config.json, there
// are none: what else lies there need not be of the model.
func (p *Plan) CopiedFiles() (names []string) {
	if p.source.single && p.source.Config.Model == nil {
		return nil
	}
	for _, name := range p.source.others {
		ours := name == ConfigName || name == ModelOptName || name == CertificateName ||
			name == "octavo-run.json" || name == CertificatePage || strings.HasSuffix(name, doneSuffix)
		weights := slices.ContainsFunc(notCopied, func(end string) bool {
			return strings.HasSuffix(name, end)
		})
		if !ours && !weights && !strings.HasPrefix(name, ".") {
			names = append(names, name)
		}
	}
	return names
}

// Files returns the names of all files that Convert writes, the certificate last and before it
// the configuration.
func (p *Plan) Files() ([]string, error) {
	documents, err := p.Documents()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, s := range p.Shards {
		names = append(names, s.Name)
	}
	names = append(names, p.CopiedFiles()...)
	names = append(names, slices.Sorted(maps.Keys(documents))...)
	return append(names, CertificateName), nil
}

// mostStrips bounds the memory of all strips that are at work.
const mostStrips = 640 << 20

// workers returns the number of goroutines whose strips fit in memory.
func (p *Plan) workers(o Options) int {
	largest := 1
	for _, s := range p.Shards {
		for _, t := range s.Targets {
			if t.Weight == nil || t.Copied() {
				continue
			}
			_, _, cols := t.dims()
			for _, s := range t.spans(o.strip())[:min(1, t.Weight.Len())] {
				largest = max(largest, (s.hi-s.lo)*cols)
			}
		}
	}
	workers := o.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	return max(1, min(workers, mostStrips/16/largest)) // 16 bytes for each element of a strip
}

// converting is the work of one call of Convert.
type converting struct {
	p      *Plan
	dir    string
	states []fileState
	digest string
	o      Options
}

func newConverting(p *Plan, dir string, o Options) (*converting, error) {
	states, err := p.states()
	if err != nil {
		return nil, err
	}
	digest, err := p.digest(states)
	if err != nil {
		return nil, err
	}
	o.Errors, o.Workers = true, p.workers(o)
	return &converting{p: p, dir: dir, states: states, digest: digest, o: o}, nil
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

func (c *converting) run(ctx context.Context, complete completer) (*Certificate, error) {
	verdicts, err := c.claims(ctx)
	if err != nil {
		return nil, err
	}
	shards, err := complete(c)
	if err != nil {
		return nil, err
	}
	cert := &Certificate{Layout: c.p.Layout.Name, Plan: c.digest}
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
	if len(cert.Tensors) > 0 && !slices.ContainsFunc(cert.Tensors, changed) {
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
	if err := samePlan(c.dir, d.Plan, c.digest); err != nil {
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
	d := &ShardResult{Plan: c.digest, File: file}
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

// write writes a file that is in memory.
func (c *converting) write(name string, data []byte) (FileSum, error) {
	err := atomicfile.Write(filepath.Join(c.dir, name), func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
	sum := checksum.Of(data)
	return FileSum{Name: name, Bytes: int64(len(data)), CRC32: hexSum(sum)}, err
}

func hexSum(sum uint32) string { return fmt.Sprintf("%08x", sum) }

// sum reads a file that was written.
func (c *converting) sum(name string, m *meter.Meter) (FileSum, error) {
	file, err := os.Open(filepath.Join(c.dir, name))
	if err != nil {
		return FileSum{}, err
	}
	defer file.Close()
	return c.sumAll(name, file, io.Discard, m)
}

// sumAll copies what r has to w and sums it up.
func (c *converting) sumAll(name string, r io.Reader, w io.Writer, m *meter.Meter) (FileSum, error) {
	buffer := make([]byte, 1<<20)
	size, sum := int64(0), uint32(0)
	for {
		n, err := r.Read(buffer)
		sum = checksum.Update(sum, buffer[:n])
		size += int64(n)
		if _, e := w.Write(buffer[:n]); e != nil {
			return FileSum{}, e
		}
		if e := m.Add(int64(n)); e != nil {
			return FileSum{}, e
		}
		if err == io.EOF {
			return FileSum{Name: name, Bytes: size, CRC32: hexSum(sum)}, nil
		}
		if err != nil {
			return FileSum{}, err
		}
	}
}

// copyFiles copies the files beside the weights.
func (c *converting) copyFiles(ctx context.Context) (sums []FileSum, err error) {
	m := meter.New(ctx, nil, "", 0)
	for _, name := range c.p.CopiedFiles() {
		file, _, err := inputfile.Open(c.p.path(name))
		if err != nil {
			return nil, err
		}
		var sum FileSum
		err = atomicfile.Write(filepath.Join(c.dir, name), func(w io.Writer) (err error) {
			sum, err = c.sumAll(name, file, w, m)
			return err
		})
		file.Close()
		if err != nil {
			return nil, err
		}
		sums = append(sums, sum)
	}
	return sums, nil
}

// writeDocuments writes the configuration and the index.
func (c *converting) writeDocuments() (sums []FileSum, err error) {
	documents, err := c.p.Documents()
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(documents)) {
		sum, err := c.write(name, documents[name])
		if err != nil {
			return nil, err
		}
		sums = append(sums, sum)
	}
	return sums, nil
}

// whole makes one operation of those that shards consist of.
type whole struct {
	r             progress.Reporter
	op            string
	before, total int64
}

// Progress implements [progress.Reporter].
func (w *whole) Progress(_ string, done, total int64) {
	w.r.Progress(w.op, w.before+done, w.total)
	if done == total {
		w.before += total
	}
}

// workOf returns how many bytes Write reads, all in all, for shards that it has not seen.
func (c *converting) workOf(shards []int) (n int64) {
	seen := map[*group]bool{}
	strip := c.o.strip()
	for _, i := range shards {
		for _, t := range c.p.Shards[i].Targets {
			for _, s := range t.spans(strip) {
				n += s.size
			}
			if g := t.group; g != nil && t.Scheme != nil && !seen[g] {
				seen[g] = true
				n += g.size(strip)
			}
		}
	}
	return n
}
