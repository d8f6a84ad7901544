package beam

import (
	"fmt"
	"path/filepath"
	"regexp"

	"github.com/octavo-fp8/octavo/checkpoint"
)

// Job is a conversion, as workers are told of it.
type Job struct {
	Source string // a directory, an index or a file: see [checkpoint.Open]
	Out    string // the directory to write, which is made if need be
	Layout string // see [checkpoint.ParseLayout]

	// Arithmetic, unless "", takes the place of the layout's.
	Arithmetic checkpoint.Arithmetic

	// Only and Except, unless "", are regular expressions that choose weights by name: see
	// [checkpoint.PlanOptions].
	Only, Except string

	// Lossless allows no loss: the first shard that loses anything ends the pipeline.
	Lossless bool

	// Amax are the largest magnitudes of layers' inputs, for layouts with static scales.
	Amax map[string]float32

	// Workers is the number of goroutines that convert a shard; 0 means GOMAXPROCS.
	Workers int

	// Statistics, unless "", is a file that gets the events of [Result], one JSON object a
	// line, which [telemetry.ReadJSONLines] reads.
	Statistics string

	// Plan is what workers compare with the digest of their own plan. [Convert] sets it.
	Plan string
}

// absolute makes paths independent of a process's directory.
func (j *Job) absolute() error {
	for _, path := range []*string{&j.Source, &j.Out, &j.Statistics} {
		if *path == "" {
			continue
		}
		whole, err := filepath.Abs(*path)
		if err != nil {
			return err
		}
		*path = whole
	}
	return nil
}

// open opens the source and plans the conversion. The caller must close the checkpoint.
func (j *Job) open() (c *checkpoint.Checkpoint, p *checkpoint.Plan, err error) {
	layout, err := checkpoint.ParseLayout(j.Layout)
	if err != nil {
		return nil, nil, err
	}
	o := checkpoint.PlanOptions{Arithmetic: j.Arithmetic, Amax: j.Amax, Lossless: j.Lossless}
	if o.Only, err = matcher(j.Only); err != nil {
		return nil, nil, err
	}
	if o.Except, err = matcher(j.Except); err != nil {
		return nil, nil, err
	}
	if c, err = checkpoint.Open(j.Source); err != nil {
		return nil, nil, err
	}
	if p, err = checkpoint.NewPlan(c, layout, o); err == nil {
		err = j.setPlan(p)
	}
	if err != nil {
		c.Close()
		return nil, nil, err
	}
	return c, p, nil
}

// matcher returns what matches a regular expression, nil for "".
func matcher(expression string) (func(string) bool, error) {
	if expression == "" {
		return nil, nil
	}
	r, err := regexp.Compile(expression)
	if err != nil {
		return nil, err
	}
	return r.MatchString, nil
}

// setPlan sets Plan, or compares it.
func (j *Job) setPlan(p *checkpoint.Plan) error {
	digest := p.Digest()
	if j.Plan == "" {
		j.Plan = digest
	}
	if digest != j.Plan {
		return fmt.Errorf("%s: files, sizes or times are not those that the pipeline was started with: "+
			"all workers must see one source, and nobody may change it", j.Source)
	}
	return nil
}

// options are those of the conversion: of what changes certificates there is nothing here.
func (j *Job) options() checkpoint.Options { return checkpoint.Options{Workers: j.Workers} }
