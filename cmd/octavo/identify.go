package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/cmd/internal/display"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/textout"
	verdicts "github.com/octavo-fp8/octavo/internal/verdict"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/oracle/identify"
)

type identifyFlags struct {
	setup           identify.Setup
	format, formatB fp8.Format
	out             string
	got             string
	pagedFlags
}

func newIdentifyCommand() *cobra.Command {
	var f identifyFlags
	f.setup.K = identify.DefaultK
	cmd := &cobra.Command{
		Use:     "identify -o PROBES | identify PROBES --got ANSWERS",
		Short:   "Find out how a kernel adds products, and which GPU's it is",
		Long:    helpOf("identify"),
		Example: examplesOf("identify"),
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case f.out != "" && f.got != "":
				return errors.New("-o writes probes and --got reads answers to them: give one of them")
			case f.out == "" && f.got == "":
				return errors.New("want -o to write probes, or --got with the answers to them" + otherProducts)
			case f.out != "" && len(args) > 0:
				return fmt.Errorf("want no arguments beside -o, there is %q", args[0])
			case f.out != "" && f.html != "":
				return errors.New("--html is a page of what answers tell: there are none with -o")
			case f.got != "" && len(args) != 1:
				return fmt.Errorf("want one file of probes, %s", thereAre(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			f.setup.Format = f.format
			if cmd.Flags().Changed("b-format") {
				f.setup.FormatB = &f.formatB
			}
			if f.out != "" {
				if f.setup.NVFP4 && !cmd.Flags().Changed("k") {
					f.setup.K = 0 // its default is another
				}
				return f.write(cmd)
			}
			if err := refuse(cmd, " is for writing probes: the file of probes says it",
				"format", "b-format", "k", "a-block", "b-block", "e8m0", "nvfp4", "float", "old"); err != nil {
				return err
			}
			return f.identify(cmd, args[0])
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.out, "out", "o", "", "`FILE` to write probes to, replaced if it exists")
	flags.StringVar(&f.got, "got", "", "`FILE` or directory with the kernel's answers")
	formatFlag(cmd, &f.format, "e4m3", "of the operands")
	flags.Var(oneOf{&parsed[fp8.Format]{&f.formatB, "", "FORMAT", fp8.ParseFormat}, formatNames()}, "b-format", "of B, if it is another")
	wholeFlag(cmd, &f.setup.K, 64, 1<<15, "k", "columns of the operands, a multiple of 32 up to 2048; promotion is seen after up to half as many products")
	blockFlag(cmd, &f.setup.BlockA, "a-block", "rows and columns of A that share a scale (default tensor)")
	blockFlag(cmd, &f.setup.BlockB, "b-block", "the same of B")
	flags.BoolVar(&f.setup.E8M0, "e8m0", false, "scales are powers of two, F8_E8M0")
	flags.Var(oneOf{&parsed[oracle.Float]{&f.setup.Float, "", "bf16|fp16|tf32", parseFloat}, []string{"bf16", "fp16", "tf32"}}, "float", "operands are numbers without scales: bf16, fp16 or tf32")
	flags.BoolVar(&f.setup.Old, "old", false, "the kernel adds the product to an old C: ask where that enters")
	flags.BoolVar(&f.setup.NVFP4, "nvfp4", false, "operands are E2M1 codes, one to a byte, with an E4M3 scale for each 16; --k is a multiple of 512 from 1024 to 32768 (default 2048)")
	f.add(cmd, "what the answers tell")
	cmd.AddCommand(newIdentifyQuantizerCommand())
	return cmd
}

func parseFloat(name string) (oracle.Float, error) {
	f, err := oracle.ParseFloat(name)
	if err == nil && f == oracle.NoFloat {
		err = usagef("--float none is no format: leave the flag out")
	}
	return f, err
}

// otherProducts is what is said to whoever has the result of a kernel for operands of his own.
const otherProducts = "; octavo verify judges products of other operands"

// foreign adds to an error about a file of another kind what identify reads.
func foreign(err error) error {
	if errors.Is(err, identify.ErrFile) {
		err = fmt.Errorf("%w: octavo identify -o FILE writes probes, and --got takes a kernel's C of each of their products%s", err, otherProducts)
	}
	return err
}

// write writes probes.
func (f *identifyFlags) write(cmd *cobra.Command) error {
	p, err := identify.New(f.setup)
	if err != nil {
		return usageError{err}
	}
	if err := p.WriteFile(f.out); err != nil {
		return unwritten(f.out, err)
	}
	if quiet(cmd) {
		return nil
	}
	w := verdicts.NewWriter(cmd.OutOrStdout())
	fmt.Fprintf(w, "probes of %v\n", p.Setup)
	t := textout.NewTable(w)
	fmt.Fprintln(t, "product\tMxNxK\twhat it asks")
	for i := range p.Products {
		m, n, k := p.Products[i].Size()
		fmt.Fprintf(t, "%s\t%dx%dx%d\t%s\n", p.Products[i].Name, m, n, k, p.Products[i].Purpose)
	}
	t.Flush()
	return w.Flush()
}

// identify reads answers and reports what they tell.
func (f *identifyFlags) identify(cmd *cobra.Command, path string) error {
	if err := f.check([]string{path, f.got}); err != nil {
		return err
	}
	p, err := identify.ReadFile(path)
	if err != nil {
		return foreign(err)
	}
	answers, err := p.ReadAnswers(f.got)
	if err != nil {
		return foreign(err)
	}
	r, err := work(cmd, "nothing was found out", func(ctx context.Context, d *display.Display) (*identify.Report, error) {
		d.Unit("kernels")
		return identify.Identify(ctx, p, answers, identify.Options{Progress: d})
	})
	if err != nil {
		return err
	}
	if err := f.show(cmd, r, r.WriteText); err != nil {
		return err
	}
	if len(r.Kernels) == 0 {
		return fmt.Errorf("%s: %s", f.got, r.Found())
	}
	return nil
}
