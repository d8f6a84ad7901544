package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/cmd/internal/certificate"
	"github.com/octavo-fp8/octavo/cmd/internal/display"
	"github.com/octavo-fp8/octavo/cmd/internal/outdir"
	"github.com/octavo-fp8/octavo/cmd/internal/vocabulary"
	"github.com/octavo-fp8/octavo/internal/inputfile"
	"github.com/octavo-fp8/octavo/internal/jsonout"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/nn/evaluate"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
)

// conversion is a run of convert.
type conversion struct {
	arithmetic checkpoint.Arithmetic // "": the layout's
	source     *checkpoint.Checkpoint
	plan       *checkpoint.Plan
	files      []string
	out        string
	begun      time.Time

	smoothed string // what smoothing did; "" without
	before   int    // shards that were complete when it began
}

// runConvert does a conversion.
func runConvert(cmd *cobra.Command, args []string, f *convertFlags) error {
	if f.resume && f.overwrite {
		return usagef("--resume goes on with a conversion and --overwrite replaces it: give one of them")
	}
	c := &conversion{out: f.out, begun: time.Now()}
	var err error
	if c.arithmetic, err = vocabulary.InLayout(f.recipe, f.layout); err != nil {
		return usageError{err}
	}
	if c.source, err = checkpoint.Open(args[0]); err != nil {
		return mendModel(args[0], err)
	}
	defer func() { c.source.Close() }()
	ctx, stop := untilSignal(cmd)
	defer stop()
	if err := c.checkPlace(); err != nil {
		return err
	}
	if cmd.Flags().Changed("smooth") {
		remove, err := c.smooth(ctx, cmd, f)
		if err != nil {
			return err
		}
		defer remove()
	}
	if err := c.planIt(ctx, cmd, f); err != nil {
		return err
	}
	cert := c.complete(f.resume)
	if cert == nil {
		if cert, err = c.run(ctx, cmd, args, f); err != nil {
			return err
		}
	} else {
		note(cmd, "the conversion in %s is complete", textout.Name(c.out))
		c.before = len(c.plan.Shards)
	}
	if f.layout.Plain == "" && c.source.Config.Model == nil && !strings.HasSuffix(args[0], ".safetensors") {
		warn(cmd.ErrOrStderr(), "%s has no config.json, and so none was written, which would tell loaders how weights are quantized",
			textout.Name(c.source.Dir()))
	}
	if c.source.Index != nil {
		c.warnOfOthers(cmd)
	}
	if err := c.print(cmd, f, cert); err != nil {
		return err
	}
	if n := len(cert.NotUnderstood); n > 0 {
		return fmt.Errorf("%s: %d tensors were copied and not understood: this is no certificate", textout.Name(c.out), n)
	}
	return nil
}

// tidy ends what a process had begun that was killed while it put the model into its place.
func (c *conversion) tidy() {
	if run, err := outdir.Create(c.out, outdir.Options{Overwrite: true, Resume: true}); err == nil {
		run.Pause()
	}
}

// warnOfOthers warns of weights that the index does not name.
func (c *conversion) warnOfOthers(cmd *cobra.Command) {
	var others []string
	for _, name := range c.source.Others() {
		if strings.HasSuffix(name, ".safetensors") {
			others = append(others, textout.Name(name))
		}
	}
	if len(others) > 0 {
		warn(cmd.ErrOrStderr(), "what the index does not name was not converted: %s; mend the index if that is of the model", strings.Join(others, ", "))
	}
}

// checkPlace refuses to write into the directory of the model.
func (c *conversion) checkPlace() error {
	if a, err := os.Stat(c.source.Dir()); err == nil {
		if b, err := os.Stat(c.out); err == nil && os.SameFile(a, b) {
			return usagef("the model is in %s: name another directory with -o", textout.Name(c.out))
		}
	}
	return nil
}

// planIt plans the conversion.
func (c *conversion) planIt(ctx context.Context, cmd *cobra.Command, f *convertFlags) error {
	o := checkpoint.PlanOptions{Arithmetic: c.arithmetic, Lossless: f.lossless, Smoothed: c.smoothed}
	if f.only != nil {
		o.Only = f.only.MatchString
	}
	if f.except != nil {
		o.Except = f.except.MatchString
	}
	if f.recipeFile != "" {
		if err := refuse(cmd, " is for a model without --recipe-file, which has a recipe for each module: give one of them", "only", "except", "profile"); err != nil {
			return err
		}
		file, err := readRecipeFile(f.recipeFile)
		if err != nil {
			return err
		}
		if o.Recipes, err = recipesFor(c.source, file, f.recipeFile); err != nil {
			return err
		}
	}
	problems := c.source.Problems()
	if len(problems) > 0 && errors.Is(problems[0], checkpoint.ErrUnread) {
		return fmt.Errorf("%w: nothing was written", problems[0])
	}
	if len(problems) > 0 {
		return fmt.Errorf("%w: octavo lint %s says all that is wrong", problems[0], shellQuote(c.source.Dir()))
	}
	var err error
	switch {
	case (f.calibrate != "" || f.tokens != "") && (c.smoothed == "" || f.layout.Calibrated != checkpoint.Dynamic):
		o.Amax, err = c.calibrate(ctx, cmd, f)
	case f.amax != "":
		o.Amax, err = readAmax(f.amax)
	}
	if err != nil {
		return err
	}
	if c.plan, err = checkpoint.NewPlan(c.source, f.layout, o); err != nil {
		if errors.Is(err, checkpoint.ErrUncalibrated) && o.Amax == nil {
			return fmt.Errorf("%w with --calibrate TEXT, or give what that found elsewhere with --amax", err)
		}
		return mendSource(err)
	}
	c.files = c.plan.Files()
	return nil
}

// recipesFor returns how the weights of a model are quantized by a file of the given name.
func recipesFor(c *checkpoint.Checkpoint, file *evaluate.RecipeFile, path string) (map[string]*scaling.Recipe, error) {
	all := map[string]*scaling.Recipe{}
	for _, name := range slices.Sorted(maps.Keys(file.Modules)) {
		of := file.Modules[name]
		recipe, err := evaluate.ParseRecipe(of.Recipe)
		if err != nil {
			return nil, err
		}
		all[name] = recipe.Weight.Recipe
		w := cmp.Or(c.Weight(name+".weight"), c.Weight(name))
		switch {
		case w == nil: // which is said with the others of the model
		case of.Shape != nil && !slices.Equal(of.Shape, w.Shape):
			return nil, fmt.Errorf("%s: %s is %v there and %v in the model: the file is of another one",
				textout.Name(path), textout.Name(w.Name), of.Shape, w.Shape)
		case all[name] == nil && w.Scheme == nil && w.Parts[checkpoint.Codes].DType != safetensors.BF16:
			return nil, fmt.Errorf("%s: %s is to be BF16, and it is %s: convert the model to bf16 first",
				textout.Name(path), textout.Name(w.Name), w.Parts[checkpoint.Codes].DType)
		}
	}
	return all, nil
}

// readAmax reads the largest magnitudes of layers' inputs.
func readAmax(path string) (amax map[string]float32, err error) {
	data, err := inputfile.ReadAll(path, 64<<20)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &amax); err != nil {
		return nil, fmt.Errorf("%s: want a JSON object of numbers by the names of modules: %w", textout.Name(path), err)
	}
	return amax, nil
}

// complete returns the certificate of a conversion that is to be resumed and is complete;
// nil if there is none.
func (c *conversion) complete(resume bool) *checkpoint.Certificate {
	if !resume {
		return nil
	}
	c.tidy()
	if _, err := outdir.Read(c.out); err != nil {
		return nil // what is wrong is said later
	}
	cert, err := checkpoint.ReadCertificate(c.out)
	if err != nil || cert.Plan != c.plan.Digest() {
		return nil
	}
	return cert
}

// run converts what is missing and puts all files into their places.
func (c *conversion) run(
	ctx context.Context, cmd *cobra.Command, args []string, f *convertFlags,
) (*checkpoint.Certificate, error) {
	run, err := c.directory(f)
	if err != nil {
		return nil, err
	}
	defer run.Pause()
	stage, err := run.Stage()
	if err != nil {
		return nil, err
	}
	if err := c.resume(cmd, stage, f); err != nil {
		return nil, err
	}
	bar := newDisplay(cmd)
	bar.Unit(display.Bytes)
	cert, err := checkpoint.Convert(ctx, c.plan, stage, checkpoint.Options{Workers: f.jobs, Progress: bar})
	bar.Finish()
	if err != nil {
		return nil, c.cutOff(ctx, run, stage, err)
	}
	if err := c.commit(run, cert, commandLine(cmd, args)); err != nil {
		if errors.Is(err, syscall.ENOSPC) {
			err = fmt.Errorf("%w, or make room and go on with --resume", err)
		}
		return nil, err
	}
	return cert, nil
}

// commit puts a model that is complete into its place.
func (c *conversion) commit(run *outdir.Run, cert *checkpoint.Certificate, command string) error {
	for _, name := range c.files {
		if err := run.Adopt(name); err != nil {
			return err
		}
	}
	m := outdir.Manifest{Kind: "convert", Command: command, Machine: trainMachine(), Sums: map[string]string{}}
	err := run.Add(checkpoint.CertificatePage, func(w io.Writer) error { return certificate.WritePage(w, cert, command, m.Machine) })
	if err != nil {
		return err
	}
	for _, file := range cert.Files {
		m.Sums[file.Name] = file.CRC32
	}
	return run.Commit(m)
}

// directory claims the directory of the model.
func (c *conversion) directory(f *convertFlags) (*outdir.Run, error) {
	run, err := givenDirectory(c.out, outdir.Options{
		Files:     append(slices.Clone(c.files), checkpoint.CertificatePage),
		Overwrite: f.overwrite || f.resume, // which began with --overwrite if there is a model: see resume
		Resume:    !f.overwrite,
	})
	if err != nil {
		return nil, err
	}
	if err := c.checkAlone(); err != nil {
		run.Pause()
		return nil, err
	}
	return run, nil
}

// beamStage begins the name of a directory of octavo-beam, which has its own module: there lie
// shards of a conversion that is not complete.
const beamStage = ".octavo-beam-"

// checkAlone refuses a directory in which octavo-beam is at work, or with weights that are of
// no run: a loader that takes all files there are would take them for a part of the model.
func (c *conversion) checkAlone() error {
	entries, err := os.ReadDir(c.out)
	if err != nil {
		return err
	}
	old, _ := outdir.Read(c.out)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), beamStage) {
			return fmt.Errorf("%s is of octavo-beam, which is at work there or was cut off: start that again, "+
				"remove that directory, or name another one with -o", textout.Name(filepath.Join(c.out, e.Name())))
		}
		if strings.HasSuffix(e.Name(), ".safetensors") && !slices.Contains(old.Files, e.Name()) {
			return fmt.Errorf("%s is there and is of no run, and loaders would take it for a part of the model: "+
				"move it away, or name another directory with -o", textout.Name(filepath.Join(c.out, e.Name())))
		}
	}
	return nil
}

// resume looks for what a conversion that was cut off has left.
func (c *conversion) resume(cmd *cobra.Command, stage string, f *convertFlags) (err error) {
	c.before, err = c.plan.Done(stage)
	out := textout.Name(c.out)
	_, other := os.Lstat(filepath.Join(stage, evaluate.StateName))
	switch {
	case other == nil:
		return usagef("%s has an evaluation that was cut off: name another directory with -o, or replace that with --overwrite", out)
	case !f.resume && (c.before > 0 || errors.Is(err, checkpoint.ErrPlan)):
		return usagef("%s has a conversion that was cut off: go on with --resume, or start again with --overwrite", out)
	case errors.Is(err, checkpoint.ErrPlan):
		return usagef("%s has a conversion from another source, to another layout or with other options: give those, or start again with --overwrite", out)
	case err != nil:
		return err
	case c.before > 0:
		note(cmd, "%d of %d shards are complete", c.before, len(c.plan.Shards))
	case f.resume:
		if _, err := outdir.Read(c.out); err == nil {
			return usagef("%s: %w, and none that was cut off: name another directory with -o, or replace it with --overwrite", out, outdir.ErrHasRun)
		}
	}
	return nil
}

// cutOff says what is left of a conversion that has failed or was stopped. A run of which no
// shard is complete is given up.
func (c *conversion) cutOff(ctx context.Context, run *outdir.Run, stage string, err error) error {
	done, _ := c.plan.Done(stage)
	changed := errors.Is(err, checkpoint.ErrChanged)
	if done == 0 || changed {
		run.Abort()
	}
	left := fmt.Sprintf("%d of %d shards are complete: go on with --resume", done, len(c.plan.Shards))
	err = inPlace(err, stage, c.out)
	switch {
	case changed:
		return fmt.Errorf("%w: nothing was written: convert it again when it stays as it is", err)
	case errors.Is(err, checkpoint.ErrLossy) && done > 0:
		return fmt.Errorf("%w: --resume without --lossless goes on nevertheless", err)
	case errors.Is(err, context.Canceled) && done == 0:
		return stopped(ctx, "no shard was complete, nothing was written")
	case errors.Is(err, context.Canceled):
		return stopped(ctx, left)
	case errors.Is(err, syscall.ENOSPC) && done == 0:
		return fmt.Errorf("%w: make room, or name another directory with -o", err)
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("%w: make room; %s", err, left)
	case done > 0:
		return fmt.Errorf("%w: %s", err, left)
	}
	return mendSource(err)
}

// mendModel is mendSource of a model that cannot be opened.
func mendModel(path string, err error) error {
	mended := mendSource(err)
	if mended != err {
		return mended
	}
	if c, _, e := checkpoint.OpenLenient(path); e == nil {
		c.Close()
		return fmt.Errorf("%w: octavo lint %s says all that is wrong", err, shellQuote(path))
	}
	return err
}

// mendSource adds what to do to an error about the model that is read.
func mendSource(err error) error {
	switch {
	case errors.Is(err, checkpoint.ErrIndex) && errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: get that file", err)
	case errors.Is(err, safetensors.ErrFile):
		return fmt.Errorf("%w: it is damaged or cut off: get it again", err)
	case errors.Is(err, checkpoint.ErrLossy):
		return fmt.Errorf("%w: nothing was written: leave out --lossless, or try another --recipe or --except", err)
	}
	return err
}

// print prints what became of the model.
func (c *conversion) print(cmd *cobra.Command, f *convertFlags, cert *checkpoint.Certificate) error {
	stdout := cmd.OutOrStdout()
	switch {
	case f.json:
		return jsonout.Print(stdout, cert)
	case quiet(cmd):
		return nil
	}
	if err := certificate.WriteText(stdout, cert, c.out, shownTensors(f.top, f.detail)); err != nil {
		return err
	}
	if c.before > 0 {
		return nil
	}
	took := time.Since(c.begun).Seconds()
	bytes := c.source.TotalSize()
	_, err := fmt.Fprintf(stdout, "\n%d bytes read in %.3g s: %.3g GB/s\n", bytes, took, float64(bytes)/took/1e9)
	return err
}
