package main

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/cmd/internal/display"
	"github.com/octavo-fp8/octavo/internal/jsonout"
	"github.com/octavo-fp8/octavo/progress"
)

// verdict is what is said of a kernel's result. It is JSON, too.
type verdict interface {
	WriteText(w io.Writer) error
	paged
}

// paged is what there is a page of.
type paged interface {
	WritePage(w io.Writer, command, machine string) error
}

// pagedFlags are the flags of commands whose report is text, JSON and a page.
type pagedFlags struct {
	html   string
	asJSON bool
}

func (f *pagedFlags) add(cmd *cobra.Command, onPage string) {
	htmlFlag(cmd, &f.html, onPage)
	jsonFlag(cmd, &f.asJSON)
}

// check refuses to write the page over what is read.
func (f *pagedFlags) check(read []string) error { return sameFiles(read, f.html) }

// show writes the page that is asked for, and prints JSON or text.
func (f *pagedFlags) show(cmd *cobra.Command, r paged, text func(w io.Writer) error) error {
	if err := writePage(f.html, "--html", func(w io.Writer, machine string) error {
		return r.WritePage(w, commandLine(cmd, cmd.Flags().Args()), machine)
	}); err != nil {
		return err
	}
	return printResult(cmd, f.asJSON, r, text)
}

// verdictFlags are the flags of commands that give a verdict.
type verdictFlags struct {
	pagedFlags
	workers uint64
}

func (f *verdictFlags) add(cmd *cobra.Command, onPage string) {
	workersFlag(cmd, &f.workers)
	f.pagedFlags.add(cmd, onPage)
}

// give writes the verdict that judge gives, which says in what the result failed, or why that
// is undecided, if it did not pass: then that is the error.
func (f *verdictFlags) give(cmd *cobra.Command,
	judge func(ctx context.Context, p progress.Reporter) (v verdict, failure, err error),
) error {
	var failure error
	v, err := work(cmd, "there is no verdict", func(ctx context.Context, d *display.Display) (v verdict, err error) {
		v, failure, err = judge(ctx, d)
		return v, err
	})
	if err != nil {
		return err
	}
	return cmp.Or(f.show(cmd, v, v.WriteText), failure)
}

// work does what a signal may stop; missing says what there is not then.
func work[R any](cmd *cobra.Command, missing string, do func(ctx context.Context, d *display.Display) (R, error)) (R, error) {
	ctx, stop := untilSignal(cmd)
	defer stop()
	d := newDisplay(cmd)
	r, err := do(ctx, d)
	d.Finish()
	if err != nil && ctx.Err() != nil {
		err = stopped(ctx, missing)
	}
	return r, err
}

// printResult prints a result as JSON or text.
func printResult(cmd *cobra.Command, asJSON bool, r any, text func(w io.Writer) error) error {
	if asJSON {
		return jsonout.Print(cmd.OutOrStdout(), r)
	}
	return text(cmd.OutOrStdout())
}

// failure says in what a result failed or, of the outcome "undecided", why it is that; nil
// if it passed.
func failure(pass bool, outcome, of, why string) error {
	if pass {
		return nil
	}
	err := fmt.Errorf("%s: %s", of, why)
	if outcome == "undecided" {
		return doubtError{err}
	}
	return err
}
